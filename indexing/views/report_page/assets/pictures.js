"use strict";
// Pictures of tiles: the elements of each operand that a tile or an element of the result needs.

const PLANE = 190; // the longest side of a plane, in pixels
const MAX_PLANES = 6;

/** Sliders over the tiles, or over some elements, with a picture of what the chosen one needs. */
function pictureOf(tiles) {
  if (tiles.unknown !== undefined) return el("p", { className: "unknown" }, `unknown: ${visible(tiles.unknown)}`);
  const box = el("div", { className: "pictures" });
  const controls = el("div", { className: "controls" });
  const drawing = el("div", { className: "planes", attrs: { "aria-live": "polite" } });
  const index = tiles.grid.map(() => 0);
  const tileNumber = () => index.reduce((number, k, d) => number * tiles.grid[d] + k, 0);
  const showTile = () => drawing.replaceChildren(...planesOf(tiles, tileBox(tiles, index), tiles.tiles[tileNumber()],
    `tile [${index.join(", ")}] of grid [${tiles.grid.join(", ")}]`));
  const showElement = (k) => {
    const [element, regions] = tiles.elements[k];
    const one = [element, element.map(() => 1), element.map(() => 1)];
    drawing.replaceChildren(...planesOf(tiles, one, regions, `element [${element.join(", ")}]`));
  };
  const tileSliders = () => {
    const sliders = tiles.grid.map((n, d) => (n < 2 ? null : slider(`d${d}`, n, index[d],
      (k) => { index[d] = k; showTile(); })));
    const rest = sliders.filter((each) => each !== null);
    controls.replaceChildren(...(rest.length ? rest : [el("span", { className: "note" }, "one tile")]));
    showTile();
  };
  const elementSliders = () => {
    controls.replaceChildren(slider("element", tiles.elements.length, 0, showElement));
    showElement(0);
  };
  const radio = (text, show, checked) => el("label", {},
    el("input", { type: "radio", name: `shown-${tiles.output}`, checked, onchange: show }), ` ${text} `);
  box.append(el("div", {}, radio(`tiles of [${tiles.sizes.join(", ")}]`, tileSliders, true),
    radio("some elements", elementSliders, false)), controls, drawing);
  tileSliders();
  return box;
}

function slider(name, n, value, onChange) {
  const output = el("output", {}, `${value} in [0, ${n - 1}]`);
  const input = el("input", { type: "range", min: 0, max: n - 1, value, attrs: { "aria-label": name } });
  input.addEventListener("input", () => {
    output.textContent = `${input.value} in [0, ${n - 1}]`;
    onChange(Number(input.value));
  });
  return el("label", { className: "slider" }, `${name} `, input, " ", output);
}

/** The offsets, sizes and strides of a tile of the result. */
function tileBox(tiles, index) {
  const offsets = index.map((k, d) => k * tiles.sizes[d]);
  const sizes = offsets.map((offset, d) => Math.min(tiles.sizes[d], tiles.dims[d] - offset));
  return [offsets, sizes, sizes.map(() => 1)];
}

function* planesOf(tiles, own, regions, title) {
  yield panel(`output ${tiles.output}`, title, "exact", tiles.dims, [own]);
  for (const [k, [text, kind, boxes]] of regions.entries()) {
    const [, label, dims, alike] = tiles.arrays[k];
    yield panel(visible(label), text, kind, dims, boxes, alike);
  }
}

const KINDS = {
  may: "at most these elements",
  bounding: "inside of this box",
  unknown: "unknown",
};

function panel(label, text, kind, dims, boxes, alike = []) {
  const note = KINDS[kind] === undefined ? "" : ` (${KINDS[kind]})`;
  return el("figure", {},
    el("figcaption", {}, el("b", {}, clipped(label, 60)), sameFor(alike), el("div", { className: `mono ${kind}` },
      clipped(visible(text), 120) + note)),
    kind === "unknown" ? "" : planes(dims, boxes, kind));
}

/** The planes of the last two dimensions that the boxes touch; dimensions of size 1 are not drawn. */
function planes(allDims, allBoxes, kind) {
  const isDrawn = (_, k) => allDims[k] !== 1;
  const dims = allDims.filter(isDrawn);
  const boxes = allBoxes.map((box) => box.map((each) => each.filter(isDrawn)));
  const rank = dims.length;
  const [rows, columns] = [dims[rank - 2] ?? 1, dims[rank - 1] ?? 1];
  const touched = new Map();
  let more = false;
  for (const [offsets, sizes, strides] of boxes) {
    for (const outer of indices(offsets.slice(0, -2), sizes.slice(0, -2), strides.slice(0, -2))) {
      const key = outer.join(", ");
      if (!touched.has(key) && touched.size === MAX_PLANES) { more = true; break; }
      if (!touched.has(key)) touched.set(key, []);
      const [row, column] = rank > 1 ? [rank - 2, rank - 1] : [null, rank - 1];
      const side = (k) => (k === null || k < 0 ? [0, 1, 1] : [offsets[k], sizes[k], strides[k]]);
      touched.get(key).push([side(row), side(column)]);
    }
  }
  if (touched.size === 0) touched.set(dims.slice(0, -2).map(() => "·").join(", "), []);
  const box = el("div", { className: "strip" });
  for (const [key, parts] of touched) {
    box.append(el("div", {}, key === "" ? "" : el("div", { className: "note" }, `[${key}, :, :]`),
      plane(rows, columns, parts, kind)));
  }
  if (more) box.append(el("div", { className: "note" }, "… and further planes"));
  return box;
}

/** Yield the indices of a box of at most a few elements, in row-major order. */
function* indices(offsets, sizes, strides) {
  if (offsets.length === 0) { yield []; return; }
  for (let k = 0; k < sizes[0]; k++) {
    for (const rest of indices(offsets.slice(1), sizes.slice(1), strides.slice(1))) {
      yield [offsets[0] + k * strides[0], ...rest];
    }
  }
}

/** A picture of one plane: parts are offset, size and stride of rows and of columns. */
function plane(rows, columns, parts, kind) {
  const scale = Math.min(PLANE / columns, PLANE / rows, 14);
  const width = Math.max(columns * scale, 6), height = Math.max(rows * scale, 6);
  const [x, y] = [width / columns, height / rows];
  const picture = svg("svg", {
    width: width + 2, height: height + 2, viewBox: `-1 -1 ${width + 2} ${height + 2}`, class: "plane", role: "img",
    "aria-label": `${rows} x ${columns}`,
  }, svg("rect", { width, height, class: "whole" }));
  for (const [[row, nRows, rowStride], [column, nColumns, columnStride]] of parts) {
    const drawn = [[row, nRows, rowStride, y], [column, nColumns, columnStride, x]].map(runs);
    for (const [top, tall] of drawn[0]) {
      for (const [left, wide] of drawn[1]) {
        picture.append(svg("rect", {
          x: left * x, y: top * y, width: Math.max(wide * x, 1.5), height: Math.max(tall * y, 1.5),
          class: `needed ${kind}`,
        }));
      }
    }
  }
  if (x >= 7 && y >= 7) picture.append(gridLines(rows, columns, x, y, width, height));
  return picture;
}

/** The runs of a progression: its elements where they are seen apart, otherwise its extent. */
function runs([offset, size, stride, scale]) {
  if (stride === 1 || stride * scale < 3) return [[offset, (size - 1) * stride + 1]];
  return Array.from({ length: size }, (_, k) => [offset + k * stride, 1]);
}

function gridLines(rows, columns, x, y, width, height) {
  const lines = [];
  for (let k = 1; k < rows; k++) lines.push(`M0,${(k * y).toFixed(2)} h${width}`);
  for (let k = 1; k < columns; k++) lines.push(`M${(k * x).toFixed(2)},0 v${height}`);
  return svg("path", { d: lines.join(" ") || "M0,0", class: "grid" });
}

/** The number of further operands with the same maps; the first of them appear below the pointer. */
function sameFor(alike) {
  if (alike.length === 0) return null;
  const more = alike.length > 20 ? [`… ${count(alike.length - 20)} more`] : [];
  const title = [...alike.slice(0, 20).map(visible), ...more].join("\n");
  return el("span", { className: "note", title }, ` and ${count(alike.length)} with the same maps`);
}

/** The symbolic tile of each map, and the boxes, bytes and reasons of the tiles of the picture. */
function tileTexts(tiles) {
  if (tiles.unknown !== undefined) return el("p", { className: "unknown" }, `unknown: ${visible(tiles.unknown)}`);
  const alike = new Map(tiles.arrays.map(([, label, , others]) => [label, others]));
  const entries = (list) => list.map(([label, parts, notes]) => el("div", { className: "map" },
    el("div", { className: "note" }, visible(label), sameFor(alike.get(label) ?? [])), el("pre", {}, visible(parts)),
    ...notes.map((note) => el("div", { className: "mono indent" }, visible(note)))));
  return el("div", {}, el("h3", {}, "Tiles of any size"), ...entries(tiles.symbolic),
    el("h3", {}, visible(tiles.title)), ...entries(tiles.entries));
}
