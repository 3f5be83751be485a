"use strict";
// The graph of a computation: dagre places the nodes, SVG draws them.

const MAX_NODES = 200; // a larger computation is drawn around one instruction
const NEAR_NODES = 60; // number of nodes around it
const MAX_NEIGHBOURS = 12; // of one node, where not all nodes are drawn
const MAX_UNFOLDED = 120; // a larger callee is opened in place of the computation
const CALLS_OPERANDS = new Set(["fusion", "call", "while", "async-start"]);
const LEAVES = new Set(["parameter", "constant", "iota", "partition-id", "replica-id"]);

const clipped = (text, length) => (text.length > length ? text.slice(0, length - 1) + "…" : text);

class GraphView {
  constructor(state) {
    this.state = state;
    this.zoom = 1;
    this.box = byId("graph");
    this.unfolded = new Set(); // paths of nodes whose callees are drawn in place
    byId("zoom-in").onclick = () => this.zoomTo(this.zoom * 1.25);
    byId("zoom-out").onclick = () => this.zoomTo(this.zoom / 1.25);
    byId("zoom-fit").onclick = () => this.fit();
    byId("leaves").onchange = () => this.draw();
    this.box.addEventListener("keydown", (event) => this.onKey(event));
    this.box.addEventListener("wheel", (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      this.zoomTo(this.zoom * (event.deltaY < 0 ? 1.1 : 1 / 1.1));
    }, { passive: false });
    this.dragging();
  }

  dragging() {
    let start = null;
    this.box.addEventListener("pointerdown", (event) => {
      if (event.target.closest(".node") || event.pointerType !== "mouse") return;
      start = [event.clientX + this.box.scrollLeft, event.clientY + this.box.scrollTop];
    });
    addEventListener("pointermove", (event) => {
      if (start === null) return;
      this.box.scrollTo(start[0] - event.clientX, start[1] - event.clientY);
    });
    addEventListener("pointerup", () => { start = null; });
  }

  onKey(event) {
    const { module, selected } = this.state;
    if (event.key === "+") this.zoomTo(this.zoom * 1.25);
    else if (event.key === "-") this.zoomTo(this.zoom / 1.25);
    else if (event.key === "0") this.fit();
    else if (selected === null) return;
    else if (event.key === "ArrowUp") this.go(module.operands[selected]);
    else if (event.key === "ArrowDown") this.go(module.users[selected]);
    else if (event.key === "Enter") this.toggle(selected, String(selected));
    else return;
    event.preventDefault();
  }

  go(neighbours) {
    const drawn = neighbours.find((each) => this.box.querySelector(`[data-instruction="${each}"]`));
    const next = drawn ?? neighbours[0];
    if (next !== undefined) this.state.select(next);
  }

  /** The instructions of the computation to draw, and a note if some are left out. */
  chosen() {
    const { module, computation, filter, selected } = this.state;
    const every = module.instructionsOf(computation);
    const isShown = byId("leaves").checked
      ? () => true
      : (i) => i === selected || module.isRoot(i) || !LEAVES.has(module.opcodeOf(i));
    const listed = every.filter(isShown);
    const hidden = every.length - listed.length;
    const left = hidden ? `${count(hidden)} parameters and constants are not drawn. ` : "";
    if (listed.length <= MAX_NODES) return [listed, left];
    const isFiltered = this.state.isFiltered();
    if (isFiltered) {
      const matching = listed.filter((i) => module.matches(i, filter));
      if (!matching.includes(selected)) {
        matching.sort((a, b) => (module.moved.get(b) ?? -1) - (module.moved.get(a) ?? -1));
        const drawn = matching.slice(0, NEAR_NODES);
        return [drawn, `${count(every.length)} instructions: ${count(drawn.length)} of the ` +
          `${count(matching.length)} that meet the filters are drawn, those that move most bytes.`];
      }
    }
    const focus = this.centre = this.focus(listed);
    return [this.near(focus, isShown), `${count(every.length)} instructions: those near ` +
      `${oneLine(module.names[focus])} are drawn. Click on a node to move on, or filter.`];
  }

  /** The selected instruction, or the one that moves most bytes. */
  focus(listed) {
    const { module, selected, computation } = this.state;
    if (selected !== null && module.computationOf[selected] === computation) return selected;
    const moved = (i) => { const n = module.moved.get(i); return Number.isFinite(n) ? n : -1; };
    return listed.reduce((best, i) => (moved(i) > moved(best) ? i : best), listed[0]);
  }

  near(focus, isShown) {
    const { module } = this.state;
    const found = new Set([focus]);
    const isHub = (i) => module.operands[i].length > MAX_NEIGHBOURS || module.users[i].length > MAX_NEIGHBOURS;
    for (const each of found) {
      if (each !== focus && isHub(each)) continue; // a tuple of results leads everywhere
      const around = [
        ...module.operands[each].filter(isShown).slice(0, MAX_NEIGHBOURS),
        ...module.users[each].filter(isShown).slice(0, MAX_NEIGHBOURS),
      ];
      for (const next of around) if (found.size < NEAR_NODES) found.add(next);
      if (found.size >= NEAR_NODES) break;
    }
    return [...found].sort((a, b) => a - b);
  }

  draw() {
    this.centre = null;
    const [chosen, note] = this.chosen();
    byId("graph-note").textContent = note;
    const graph = new dagre.graphlib.Graph({ compound: true, multigraph: false });
    graph.setGraph({ rankdir: "TB", nodesep: 14, ranksep: 34, marginx: 12, marginy: 12 });
    graph.setDefaultEdgeLabel(() => ({}));
    this.addNodes(graph, chosen, "");
    dagre.layout(graph);
    this.paint(graph);
  }

  /** Add the nodes of a computation below the node `parent`, "" for none, and their edges. */
  addNodes(graph, instructions, parent) {
    const { module } = this.state;
    const prefix = parent === "" ? "" : `${parent}/`;
    const drawn = new Set(instructions);
    for (const instruction of instructions) {
      const path = prefix + instruction;
      const label = this.label(instruction);
      if (this.unfolded.has(path)) {
        graph.setNode(path, { instruction, path, isCluster: true, label });
      } else {
        const width = Math.max(...label.map((line, k) => line.length * (k ? 6.2 : 7)), 40) + 18 + (module.calls[instruction] ? 16 : 0);
        graph.setNode(path, { instruction, path, label, width, height: 16 + 14 * label.length });
      }
      if (parent !== "") graph.setParent(path, parent);
      if (this.unfolded.has(path)) {
        for (const called of module.calls[instruction]) {
          this.addNodes(graph, module.instructionsOf(called), path);
        }
      }
    }
    for (const instruction of instructions) {
      const path = prefix + instruction;
      module.operands[instruction].forEach((operand, k) => {
        if (!drawn.has(operand)) return;
        for (const end of this.entries(instruction, path, k)) {
          for (const start of this.exits(operand, prefix + operand)) graph.setEdge(start, end);
        }
      });
    }
  }

  /** The nodes that read operand `k` of a node: parameters of its callees, if they are drawn. */
  entries(instruction, path, k) {
    if (!this.unfolded.has(path)) return [path];
    const { module } = this.state;
    return module.calls[instruction].flatMap((called) => {
      const parameter = module.computations[called].parameters[k];
      return parameter === undefined ? [] : this.entries(parameter, `${path}/${parameter}`, 0);
    });
  }

  /** The nodes that give the result of a node: roots of its callees, if they are drawn. */
  exits(instruction, path) {
    if (!this.unfolded.has(path)) return [path];
    const { module } = this.state;
    return module.calls[instruction].flatMap((called) => {
      const { root } = module.computations[called];
      return this.exits(root, `${path}/${root}`);
    });
  }

  label(instruction) {
    const { module } = this.state;
    const lines = [clipped(oneLine(module.names[instruction]), 34)];
    const shape = clipped(module.shapeOf(instruction), 30);
    lines.push(clipped(`${module.opcodeOf(instruction)} ${shape}`, 40));
    const cells = module.traffic.get(instruction);
    if (cells !== undefined) lines.push(`${cells[0]} bytes`);
    return lines;
  }

  paint(graph) {
    const { width = 0, height = 0 } = graph.graph();
    this.size = [Math.max(width, 1), Math.max(height, 1)];
    const arrow = svg("marker", {
      id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7,
      orient: "auto", markerUnits: "userSpaceOnUse",
    }, svg("path", { d: "M0,0 L8,4 L0,8 z", class: "arrow" }));
    const picture = svg("svg", { viewBox: `0 0 ${this.size[0]} ${this.size[1]}`, role: "group" },
      svg("defs", {}, arrow));
    const nodes = graph.nodes().map((name) => graph.node(name));
    const clusters = nodes.filter((node) => node.isCluster);
    clusters.sort((a, b) => a.path.split("/").length - b.path.split("/").length);
    for (const node of clusters) picture.append(this.node(node));
    for (const edge of graph.edges()) {
      const points = graph.edge(edge).points.map((p) => `${p.x.toFixed(1)},${p.y.toFixed(1)}`);
      const ends = `${edge.v} ${edge.w}`;
      picture.append(svg("polyline", {
        points: points.join(" "), class: "edge", "marker-end": "url(#arrow)", "data-ends": ends,
      }));
    }
    for (const node of nodes) if (!node.isCluster) picture.append(this.node(node));
    this.box.replaceChildren(picture);
    this.picture = picture;
    this.zoomTo(Math.min(1, Math.max(0.8, (this.box.clientWidth - 24) / this.size[0])));
    this.mark();
    this.reveal();
  }

  node(node) {
    const { module } = this.state;
    const { instruction, path, label } = node;
    const left = node.x - node.width / 2, top = node.y - node.height / 2;
    const title = `${oneLine(module.names[instruction])} = ${module.shapeOf(instruction)} ` +
      `${module.opcodeOf(instruction)}`;
    const group = svg("g", {
      class: `node ${node.isCluster ? "cluster" : ""}`, "data-instruction": instruction,
      "data-path": path, transform: `translate(${left.toFixed(1)},${top.toFixed(1)})`,
    }, svg("title", {}, title),
      svg("rect", {
        width: node.width, height: node.height, rx: 4, class: node.isCluster ? "" : this.shade(instruction),
      }));
    const lines = node.isCluster ? [clipped(label[0], Math.floor(node.width / 7) - 3)] : label;
    const dark = !node.isCluster && this.isDark(instruction);
    const shift = module.calls[instruction] ? 8 : 0;
    lines.forEach((line, k) => group.append(svg("text", {
      x: node.isCluster ? 22 : node.width / 2 + shift, y: 17 + 14 * k,
      class: `${k ? "small" : "name"} ${node.isCluster ? "" : "middle"} ${dark ? "other" : ""}`,
    }, line)));
    group.addEventListener("click", () => this.state.select(instruction));
    group.addEventListener("dblclick", () => this.toggle(instruction, path));
    if (module.calls[instruction] !== undefined) group.append(this.toggleMark(node, dark));
    return group;
  }

  toggleMark(node, dark) {
    const isOpen = node.isCluster === true;
    const mark = svg("g", { class: "toggle", transform: "translate(3,3)" },
      svg("title", {}, isOpen ? "Fold the computation" : "Unfold the computation"),
      svg("rect", { width: 15, height: 15, class: "hit" }),
      svg("text", { x: 7, y: 12, class: `middle name ${dark ? "other" : ""}` }, isOpen ? "▾" : "▸"));
    mark.addEventListener("click", (event) => {
      event.stopPropagation();
      this.toggle(node.instruction, node.path);
    });
    return mark;
  }

  /** The shade of a node: its share of the most bytes that an instruction moves, by factors of 4. */
  shadeNumber(instruction) {
    const { module } = this.state;
    const moved = module.moved.get(instruction);
    if (moved === undefined || moved <= 0) return 0;
    if (!Number.isFinite(moved)) return 6;
    return Math.max(1, 6 - Math.floor(Math.log(module.mostMoved / moved) / Math.log(4)));
  }

  shade(instruction) {
    return `h${this.shadeNumber(instruction)}`;
  }

  isDark(instruction) {
    return this.shadeNumber(instruction) >= 4;
  }

  /** Draw the callees of a node in place, or no longer; open a large one. */
  toggle(instruction, path) {
    const { module } = this.state;
    const called = module.calls[instruction];
    if (called === undefined) return;
    const size = called.reduce((sum, each) => sum + module.computations[each].count, 0);
    if (!CALLS_OPERANDS.has(module.opcodeOf(instruction)) || size > MAX_UNFOLDED) {
      this.state.open(called[0]);
      return;
    }
    if (!this.unfolded.delete(path)) this.unfolded.add(path);
    this.draw();
  }

  zoomTo(zoom) {
    const box = this.box;
    const middle = [
      (box.scrollLeft + box.clientWidth / 2) / this.zoom,
      (box.scrollTop + box.clientHeight / 2) / this.zoom,
    ];
    this.zoom = Math.min(3, Math.max(0.05, zoom));
    this.picture.setAttribute("width", this.size[0] * this.zoom);
    this.picture.setAttribute("height", this.size[1] * this.zoom);
    box.scrollTo(
      middle[0] * this.zoom - box.clientWidth / 2, middle[1] * this.zoom - box.clientHeight / 2,
    );
  }

  fit() {
    const { clientWidth, clientHeight } = this.box;
    this.zoomTo(Math.min(clientWidth / this.size[0], clientHeight / this.size[1], 1.5) * 0.98);
  }

  /** Mark the selected node and its edges; dim the nodes that do not meet the filters. */
  mark() {
    const { module, selected, filter } = this.state;
    const isFiltered = this.state.isFiltered();
    for (const node of this.box.querySelectorAll(".node")) {
      const instruction = Number(node.dataset.instruction);
      node.classList.toggle("selected", instruction === selected);
      node.classList.toggle("dim", isFiltered && !module.matches(instruction, filter));
    }
    for (const edge of this.box.querySelectorAll(".edge")) {
      const ends = edge.dataset.ends.split(" ").map((path) => Number(path.split("/").at(-1)));
      edge.classList.toggle("selected", ends.includes(selected));
    }
  }

  /** Scroll to the selected node, or to the one around which others are drawn, or to the first. */
  reveal() {
    const node = this.box.querySelector(".node.selected")
      ?? this.box.querySelector(`.node[data-instruction="${this.centre}"]`) ?? this.box.querySelector(".node");
    if (node === null) return;
    const inside = node.getBoundingClientRect(), outer = this.box.getBoundingClientRect();
    const isVisible = inside.left >= outer.left && inside.right <= outer.right &&
      inside.top >= outer.top && inside.bottom <= outer.bottom;
    if (isVisible) return;
    this.box.scrollBy(
      inside.left + inside.width / 2 - outer.left - outer.width / 2,
      inside.top + inside.height / 2 - outer.top - outer.height / 2,
    );
  }

  /** Show the selected instruction: mark it if it is drawn, otherwise draw the part around it. */
  show() {
    if (this.box.querySelector(`[data-instruction="${this.state.selected}"]`) === null) this.draw();
    this.mark();
    this.reveal();
  }
}
