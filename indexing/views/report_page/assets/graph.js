"use strict";
// The graph of a computation: its instructions, or groups of them, with the edges between them.

const MAX_PARTS = 24; // of an opened group; further ones are drawn after a click
const MIN_PARTS = 6; // in a small window
const AREA_OF_PART = 15000; // square pixels
const MAX_MATCHING = 60; // instructions that meet the filters
const MIN_ZOOM = 0.6; // of a picture that is no overview
const MAX_UNFOLDED = 120; // a larger callee is opened in place of the computation
const CALLS_OPERANDS = new Set(["fusion", "call", "while", "async-start"]);
const LEAVES = new Set(["parameter", "constant", "iota", "partition-id", "replica-id"]);

const CHARACTER = 6.4; // width of a character of a label
const STUB_LEFT = 14; // from the left side of a node to the label of a stub
const MARGIN = 20; // beside a straight edge
const ROOM_FOR_EDGES = 30; // beside the label of a stub

const stubWidth = (label) => STUB_LEFT + CHARACTER * label.length;
const middleOf = ({ left, top, width, height }) => [left + width / 2, top + height / 2];
const clipped = (text, length) => (text.length > length ? text.slice(0, length - 1) + "…" : text);

class GraphView {
  constructor(state) {
    this.state = state;
    this.zoom = 1;
    this.box = byId("graph");
    this.unfolded = new Set(); // paths of nodes whose callees are drawn in place
    this.opened = new Map(); // of each computation: the paths of open groups, and the limits of their parts
    this.isArranged = false;
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

  /** Forget what was opened, for another module. */
  restart() {
    this.unfolded.clear();
    this.opened.clear();
    this.isArranged = false;
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
    const focused = event.target.closest?.(".node:not([data-instruction])");
    if (focused && (event.key === "Enter" || event.key === " ")) {
      event.preventDefault();
      this.turn(this.nodes.find((node) => node.path === focused.dataset.path));
      return;
    }
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
    if (listed.length <= MAX_UNGROUPED || !this.state.isFiltered()) return [listed, left];
    const matching = listed.filter((i) => module.matches(i, filter));
    if (selected !== null && listed.includes(selected) && !matching.includes(selected)) return [listed, left];
    matching.sort((a, b) => (module.moved.get(b) ?? -1) - (module.moved.get(a) ?? -1));
    const drawn = matching.slice(0, MAX_MATCHING);
    return [drawn, `${count(every.length)} instructions: ${count(drawn.length)} of the ` +
      `${count(matching.length)} that meet the filters are drawn, those that move most bytes.`];
  }

  /** Draw the computation; one of few instructions without groups. */
  draw() {
    const { computation } = this.state;
    const [chosen, note] = this.chosen();
    const isGrouped = chosen.length > MAX_UNGROUPED && !note.includes("filters");
    this.nodes = [];
    this.placeOf = new Map(); // of each instruction: the path of the node that stands for it
    if (isGrouped) {
      this.tree = new GroupTree(this.state.module, chosen);
      const isFirst = !this.opened.has(computation);
      if (isFirst) this.opened.set(computation, { groups: this.tree.openedFirst(), shown: new Map() });
      this.reach(this.state.selected);
      this.addParts(this.tree.root, undefined);
    } else {
      this.tree = null;
      for (const instruction of chosen) this.addInstruction(instruction, "", undefined);
    }
    byId("graph-note").textContent = isGrouped
      ? `${note}Groups follow op_name: a click opens or closes one.` : note;
    this.graph = layOut(this.nodes, this.edgesOf(chosen));
    this.paint();
  }

  /** Open the groups around an instruction. */
  reach(instruction) {
    if (instruction === null || !this.tree.groupOf.has(instruction)) return;
    const { groups } = this.opened.get(this.state.computation);
    for (const path of this.tree.around(instruction)) groups.add(path);
  }

  /** The number of parts of a group that are drawn: at first as many as the window has room for. */
  limitOf(group) {
    const { shown } = this.opened.get(this.state.computation);
    const room = (this.box.clientWidth * this.box.clientHeight) / AREA_OF_PART;
    return shown.get(group.path) ?? Math.max(MIN_PARTS, Math.min(MAX_PARTS, Math.floor(room)));
  }

  /** Add the parts of an open group below the node `parent`. */
  addParts(group, parent) {
    const { groups } = this.opened.get(this.state.computation);
    const { module, selected } = this.state;
    const parts = group.parts((i) => this.tree.bytesOf(i));
    const limit = this.limitOf(group);
    const near = new Set(selected === null ? []
      : [selected, ...module.operands[selected], ...module.users[selected]].slice(0, MAX_PARTS));
    const isDrawn = (part, k) => k < limit || near.has(part) ||
      (part instanceof Group && groups.has(part.path)) || (!(part instanceof Group) && module.isRoot(part));
    const rest = [];
    parts.forEach((part, k) => {
      if (!isDrawn(part, k)) rest.push(part);
      else if (!(part instanceof Group)) this.addInstruction(part, "", parent);
      else if (groups.has(part.path)) {
        const path = `group:${part.path}`;
        this.nodes.push({ path, parent, group: part, isCluster: true, label: [part.name] });
        this.addParts(part, path);
      } else {
        this.addBox({ path: `group:${part.path}`, parent, group: part, label: this.groupLabel(part) });
        this.standFor(part, `group:${part.path}`);
      }
    });
    if (rest.length === 0) return;
    const path = `more:${group.path}`;
    for (const part of rest) this.standFor(part, path);
    this.addBox({ path, parent, more: group, label: [`… ${count(rest.length)} more`] });
  }

  /** Let a node stand for all instructions of a part of a group. */
  standFor(part, path) {
    if (!(part instanceof Group)) {
      this.placeOf.set(part, path);
      return;
    }
    for (const instruction of part.instructions) this.placeOf.set(instruction, path);
    for (const inner of part.groups.values()) this.standFor(inner, path);
  }

  groupLabel(group) {
    const share = Math.round((100 * group.bytes) / Math.max(1, this.tree.root.bytes));
    return [clipped(oneLine(group.name), 28), `${count(group.count)} instructions`,
      `${count(group.bytes)} bytes, ${share} %`];
  }

  /** Add a node with a label. */
  addBox(node) {
    const { label } = node;
    const width = Math.max(...label.map((line, k) => textWidth(line, k === 0)), 40) + 20;
    this.nodes.push({ ...node, width, height: 14 + 14 * label.length });
  }

  /** Add an instruction, and the instructions of its callees, if they are drawn in place. */
  addInstruction(instruction, prefix, parent) {
    const { module } = this.state;
    const path = prefix + instruction;
    if (prefix === "") this.placeOf.set(instruction, path);
    const label = this.label(instruction);
    if (!this.unfolded.has(path)) {
      this.addBox({ path, parent, instruction, label, hasToggle: module.calls[instruction] !== undefined });
      if (module.calls[instruction] !== undefined) this.nodes.at(-1).width += 16;
      return;
    }
    this.nodes.push({ path, parent, instruction, isCluster: true, label });
    for (const called of module.calls[instruction]) {
      for (const inner of module.instructionsOf(called)) this.addInstruction(inner, `${path}/`, path);
    }
  }

  /** The edges between the drawn nodes, each once. */
  edgesOf(instructions) {
    const { module } = this.state;
    const edges = new Map();
    const add = (own, prefix, placeOf) => {
      for (const instruction of own) {
        module.operands[instruction].forEach((operand, k) => {
          const [from, to] = [placeOf(operand), placeOf(instruction)];
          if (from === undefined || from === to) return;
          for (const end of this.entries(instruction, to, k)) {
            for (const start of this.exits(operand, from)) edges.set(`${start} ${end}`, [start, end]);
          }
        });
        const path = prefix + instruction;
        if (!this.unfolded.has(path)) continue;
        for (const called of module.calls[instruction]) {
          add(module.instructionsOf(called), `${path}/`, (each) => `${path}/${each}`);
        }
      }
    };
    add(instructions, "", (each) => this.placeOf.get(each));
    return [...edges.values()];
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

  paint() {
    const { width = 0, height = 0 } = this.graph.graph();
    this.size = [Math.max(width, 1), Math.max(height, 1)];
    const arrow = svg("marker", {
      id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7,
      orient: "auto", markerUnits: "userSpaceOnUse",
    }, svg("path", { d: "M0,0 L8,4 L0,8 z", class: "arrow" }));
    const picture = svg("svg", { viewBox: `0 0 ${this.size[0]} ${this.size[1]}`, role: "group" },
      svg("defs", {}, arrow));
    for (const node of this.nodes) Object.assign(node, this.boundsOf(node));
    this.most = Math.max(1, ...this.nodes.map((node) => (node.isCluster ? 0 : this.bytesOf(node))));
    for (const node of this.nodes) if (node.isCluster) picture.append(this.node(node)); // outer ones first
    for (const edge of this.graph.edges()) picture.append(this.edge(edge));
    for (const node of this.nodes) if (!node.isCluster) picture.append(this.node(node), ...this.stubs(node));
    this.box.replaceChildren(picture);
    this.picture = picture;
    this.fit(1);
    if (this.zoom < MIN_ZOOM && this.isTouched()) this.zoomTo(MIN_ZOOM);
    this.mark();
    this.reveal();
  }

  /** True if something was selected, opened or unfolded, so that the picture is no overview. */
  isTouched() {
    return this.state.selected !== null || this.unfolded.size > 0 || this.isArranged;
  }

  /** The place of the box of a node, without the labels of its stubs. */
  boundsOf(node) {
    const { x, y, width, height } = this.graph.node(node.path);
    const left = x - width / 2, top = y - height / 2;
    if (node.isCluster) return { left, top: top - TITLE, width, height: height + TITLE };
    return { left, top: top + (node.above.length ? STUB : 0), width, height: node.height };
  }

  edge({ v, w }) {
    const { points } = this.graph.edge(v, w);
    const [start, end] = [this.graph.node(v).node, this.graph.node(w).node];
    const inner = this.isBetweenRows(start, end) ? [] : points.slice(1, -1).map((p) => [p.x, p.y]);
    const [towards, from] = inner.length ? [inner[0], inner.at(-1)] : [middleOf(end), middleOf(start)];
    const places = [...this.attach(start, towards), ...inner, ...this.attach(end, from).reverse()];
    return svg("polyline", {
      points: places.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" "), class: "edge",
      "marker-end": "url(#arrow)", "data-start": v, "data-end": w,
    });
  }

  /** True if one node is above the other and no third one is between them. */
  isBetweenRows(start, end) {
    const [upper, lower] = start.top < end.top ? [start, end] : [end, start];
    const [top, bottom] = [upper.top + upper.height, lower.top];
    if (top > bottom || upper.isCluster || lower.isCluster) return false;
    const middles = [middleOf(upper)[0], middleOf(lower)[0]];
    const [left, right] = [Math.min(...middles) - MARGIN, Math.max(...middles) + MARGIN];
    return !this.nodes.some((node) => !node.isCluster && node !== upper && node !== lower &&
      node.top < bottom && node.top + node.height > top && node.left < right && node.left + node.width > left);
  }

  /** The places at which an edge leaves a node towards a place: beside the labels of its stubs. */
  attach(node, [x, y]) {
    const { left, top, width, height } = node;
    const isAbove = y < top, isBelow = y > top + height;
    if (!isAbove && !isBelow) {
      const side = x < left + width / 2 ? left : left + width;
      return [[side, Math.min(Math.max(y, top + 6), top + height - 6)]];
    }
    const [label, edge, step] = isAbove ? [this.stubLabel(node, true), top, -STUB] : [this.stubLabel(node, false), top + height, STUB];
    const most = left + width - 8;
    const least = label === null ? left + 8 : Math.min(most, left + stubWidth(label) + 6);
    const own = Math.min(Math.max((x + left + width / 2) / 2, least), most);
    return label === null ? [[own, edge]] : [[own, edge], [own, edge + step]];
  }

  /** The label of the stubs above or below a node; null without any. */
  stubLabel(node, isAbove) {
    const ends = isAbove ? node.above : node.below;
    if (node.isCluster || !ends.length) return null;
    const more = ends.length > 1 ? ` +${ends.length - 1}` : "";
    const room = Math.max(4, Math.floor((node.width - STUB_LEFT - ROOM_FOR_EDGES) / CHARACTER) - more.length);
    return clipped(this.nameOf(ends[0]), room) + more;
  }

  /** The stubs of the long edges of a node: a line, and the name of the other end. */
  *stubs(node) {
    for (const [ends, isAbove] of [[node.above, true], [node.below, false]]) {
      if (ends.length === 0) continue;
      const names = ends.map((path) => this.nameOf(path));
      const y = isAbove ? node.top : node.top + node.height;
      const x = node.left + 8;
      const step = isAbove ? -STUB : STUB;
      const group = svg("g", { class: "stub", "data-start": isAbove ? ends[0] : node.path },
        svg("title", {}, `${isAbove ? "reads" : "is read by"} ${names.slice(0, 20).join(", ")}`),
        svg("line", { x1: x, x2: x, y1: y, y2: y + step }),
        svg("text", { x: x + 5, y: isAbove ? y - 4 : y + 11 }, this.stubLabel(node, isAbove)));
      group.addEventListener("click", () => this.follow(ends[0]));
      yield group;
    }
  }

  nameOf(path) {
    const { node } = this.graph.node(path);
    const { instruction } = node;
    return instruction === undefined ? node.label[0] : oneLine(this.state.module.names[instruction]);
  }

  /** Go to the other end of a stub. */
  follow(path) {
    const { node } = this.graph.node(path);
    if (node.instruction !== undefined) this.state.select(node.instruction);
    else this.reveal(this.elementOf(path));
  }

  elementOf(path) {
    return [...this.box.querySelectorAll(".node")].find((each) => each.dataset.path === path) ?? null;
  }

  node(node) {
    const { module } = this.state;
    const { instruction, path, label, left, top, width, height } = node;
    const title = instruction === undefined ? this.groupTitle(node) :
      `${oneLine(module.names[instruction])} = ${module.shapeOf(instruction)} ${module.opcodeOf(instruction)}`;
    const kind = node.isCluster ? "cluster" : instruction === undefined ? "group" : "";
    const group = svg("g", {
      class: `node ${kind}`, "data-path": path,
      ...(instruction === undefined ? {} : { "data-instruction": instruction }),
      transform: `translate(${left.toFixed(1)},${top.toFixed(1)})`,
    }, svg("title", {}, title),
      svg("rect", { width, height, rx: kind === "group" ? 10 : 4, class: node.isCluster ? "" : `h${this.shadeOf(node)}` }));
    const lines = node.isCluster ? [clipped(oneLine(label[0]), Math.max(4, Math.floor(width / 7) - 3))] : label;
    const dark = !node.isCluster && this.shadeOf(node) >= 4;
    const shift = node.hasToggle ? 8 : 0;
    lines.forEach((line, k) => group.append(svg("text", {
      x: node.isCluster ? 22 : width / 2 + shift, y: 16 + 14 * k,
      class: `${k ? "small" : "name"} ${node.isCluster ? "" : "middle"} ${dark ? "other" : ""}`,
    }, line)));
    if (instruction === undefined) {
      group.addEventListener("click", () => this.turn(node));
      for (const [name, value] of [["tabindex", 0], ["role", "button"], ["aria-label", title]]) group.setAttribute(name, value);
      if (!node.more) group.setAttribute("aria-expanded", node.isCluster === true);
      if (node.isCluster) group.append(this.toggleMark(node, dark));
      return group;
    }
    group.addEventListener("click", () => this.state.select(instruction));
    group.addEventListener("dblclick", () => this.toggle(instruction, path));
    if (node.hasToggle || node.isCluster) group.append(this.toggleMark(node, dark));
    return group;
  }

  groupTitle(node) {
    if (node.more) return "Draw more";
    const { group } = node;
    const places = group.path.slice(1).split("/").map(oneLine).join(" / ");
    return `${places}: ${count(group.count)} instructions, ${count(group.bytes)} bytes`;
  }

  /** Open or close a group, or draw more parts of one. */
  turn(node) {
    const { groups, shown } = this.opened.get(this.state.computation);
    this.isArranged = true;
    if (node.more) shown.set(node.more.path, this.limitOf(node.more) + MAX_PARTS);
    else if (!groups.delete(node.group.path)) groups.add(node.group.path);
    const { selected } = this.state;
    const isInside = selected !== null && node.group && this.tree.around(selected).includes(node.group.path);
    if (isInside && !groups.has(node.group.path)) {
      this.state.selected = null; // otherwise, the group would stay open
      this.state.details.show();
    }
    const hadFocus = this.box.contains(document.activeElement);
    this.draw();
    const drawn = this.elementOf(node.path);
    this.reveal(drawn);
    if (hadFocus) (drawn ?? this.box).focus({ preventScroll: true });
  }

  toggleMark(node, dark) {
    const isOpen = node.isCluster === true;
    const mark = svg("g", { class: "toggle", transform: "translate(3,3)" },
      svg("title", {}, node.group ? "Close the group" : isOpen ? "Fold the computation" : "Unfold the computation"),
      svg("rect", { width: 15, height: 15, class: "hit" }),
      svg("text", { x: 7, y: 12, class: `middle name ${dark ? "other" : ""}` }, isOpen ? "▾" : "▸"));
    mark.addEventListener("click", (event) => {
      event.stopPropagation();
      if (node.group) this.turn(node);
      else this.toggle(node.instruction, node.path);
    });
    return mark;
  }

  /** The bytes that a node moves; Infinity if they are unknown. */
  bytesOf(node) {
    if (node.more) return 0;
    return node.group ? node.group.bytes : this.state.module.moved.get(node.instruction) ?? 0;
  }

  /** The shade of a node: its share of the most bytes that a drawn node moves, by factors of 4. */
  shadeOf(node) {
    const moved = this.bytesOf(node);
    if (moved <= 0) return 0;
    if (!Number.isFinite(moved)) return 6;
    const most = Number.isFinite(this.most) ? this.most : this.state.module.mostMoved;
    return Math.max(1, 6 - Math.floor(Math.max(0, Math.log(most / moved)) / Math.log(4)));
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

  fit(most = 1.5) {
    const { clientWidth, clientHeight } = this.box;
    this.zoomTo(Math.min((clientWidth - 2) / this.size[0], (clientHeight - 2) / this.size[1], most));
  }

  /** Mark the selected node and its edges; dim the nodes that do not meet the filters. */
  mark() {
    const { module, selected, filter } = this.state;
    const isFiltered = this.state.isFiltered();
    for (const node of this.box.querySelectorAll(".node")) {
      const instruction = Number(node.dataset.instruction ?? -1); // -1: a group
      node.classList.toggle("selected", instruction === selected);
      node.classList.toggle("dim", isFiltered && instruction >= 0 && !module.matches(instruction, filter));
    }
    for (const edge of this.box.querySelectorAll(".edge")) {
      const ends = [edge.dataset.start, edge.dataset.end].map((path) => path.split("/").at(-1));
      edge.classList.toggle("selected", ends.includes(String(selected)));
    }
  }

  /** Scroll to a node, by default the selected one. */
  reveal(node = this.box.querySelector(".node.selected")) {
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
    const { selected } = this.state;
    if (selected !== null && this.box.querySelector(`[data-instruction="${selected}"]`) === null) this.draw();
    this.mark();
    this.reveal();
  }
}
