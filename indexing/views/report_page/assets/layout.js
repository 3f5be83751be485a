"use strict";
// The layout of a graph: dagre places the nodes; an edge that would cross the page becomes two stubs.

const LONG = 2; // an edge over more rows is drawn as stubs
const TITLE = 12; // height of the title of an open group, above the rows that dagre places
const STUB = 15; // height of the label of a stub

/** Return the widths of texts in the fonts of nodes; about, for these have one width. */
const textWidth = (text, isName) => text.length * (isName ? 7 : 6.4);

/**
 * Lay out nodes and edges.
 *
 * Nodes are `{path, parent, width, height}`, with `isCluster` for one that holds others; edges are
 * `[start, end]` by path. Each node gets its place, and `above` and `below`: the other ends of edges
 * that are drawn as stubs.
 */
function layOut(nodes, edges) {
  const byPath = new Map(nodes.map((node) => [node.path, Object.assign(node, { above: [], below: [] })]));
  let kept = edges, graph = placed(nodes, kept);
  for (let round = 0; round < 3; round++) {
    const long = longEdges(graph, kept);
    if (long.size === 0) break;
    for (const k of long) {
      const [start, end] = kept[k];
      byPath.get(start).below.push(end);
      byPath.get(end).above.push(start);
    }
    kept = kept.filter((_, k) => !long.has(k));
    graph = placed(nodes, kept);
  }
  return graph;
}

function placed(nodes, edges) {
  const graph = new dagre.graphlib.Graph({ compound: true, multigraph: false });
  graph.setGraph({ rankdir: "TB", nodesep: 12, ranksep: 26, marginx: 10, marginy: 10 + TITLE });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const node of nodes) {
    const height = node.isCluster ? undefined :
      node.height + STUB * ((node.above.length > 0) + (node.below.length > 0));
    graph.setNode(node.path, node.isCluster ? { node } : { node, width: node.width, height });
    if (node.parent !== undefined) graph.setParent(node.path, node.parent);
  }
  for (const [start, end] of edges) graph.setEdge(start, end);
  dagre.layout(graph);
  return graph;
}

/** The numbers of the edges over many rows; each node keeps the shortest of its edges. */
function longEdges(graph, edges) {
  const isLeaf = (path) => graph.children(path).length === 0;
  const rows = [...new Set(graph.nodes().filter(isLeaf).map((path) => Math.round(graph.node(path).y)))];
  rows.sort((a, b) => a - b);
  const row = new Map(rows.map((y, k) => [y, k]));
  const rowOf = (path) => row.get(Math.round(graph.node(path).y)) ?? 0;
  const spans = edges.map(([start, end]) => Math.abs(rowOf(end) - rowOf(start)));
  const nearest = new Map();
  edges.forEach((ends, k) => {
    for (const path of ends) {
      if (!nearest.has(path) || spans[k] < spans[nearest.get(path)]) nearest.set(path, k);
    }
  });
  const keeps = new Set(nearest.values());
  return new Set(edges.map((_, k) => k).filter((k) => spans[k] > LONG && !keeps.has(k)));
}
