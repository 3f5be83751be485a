"use strict";
// The table of instructions, sortable by each column.

const ROWS = 200;
const TEXTS = new Set(["instruction", "opcode", "shape", "computation", "bound"]); // other columns are numbers
const DISPENSABLE = ["computation", "needed", "recompute", "padding", "flops/byte", "shape", "requested", "bound", "flops",
  "stored", "executions", "written", "read", "opcode", "time"];

class TableView {
  constructor(state) {
    this.state = state;
    this.sorted = { column: "bytes", falling: true };
    this.limit = ROWS;
    this.box = byId("table-view");
    this.box.addEventListener("keydown", (event) => this.onKey(event));
  }

  /** The instructions that meet the filters; without filters, those that move bytes. */
  listed() {
    const { module, filter } = this.state;
    const every = this.state.isFiltered() ? Array.from({ length: module.count }, (_, k) => k) : [...module.traffic.keys()];
    const matching = every.filter((i) => module.matches(i, filter));
    const keys = new Map(matching.map((i) => [i, this.key(i)]));
    const sign = this.sorted.falling ? -1 : 1;
    return matching.sort((a, b) => {
      const [one, other] = [keys.get(a), keys.get(b)];
      return one === other ? a - b : sign * (one < other ? -1 : 1);
    });
  }

  key(instruction) {
    const { module } = this.state;
    const { column } = this.sorted;
    const place = module.columns.indexOf(column);
    if (column === "instruction") return module.names[instruction];
    if (column === "opcode") return module.opcodeOf(instruction);
    if (column === "shape") return module.shapeOf(instruction);
    if (column === "computation") return module.computations[module.computationOf[instruction]].name;
    const cells = module.traffic.get(instruction);
    if (column === "bound") return cells?.[place] ?? "";
    return cells === undefined ? -2 : numberIn(cells[place]);
  }

  draw() {
    const { module } = this.state;
    const rows = this.listed();
    this.rows = rows;
    const used = module.columns.slice(0, -1).filter((_, k) =>
      [...module.traffic.values()].some((cells) => cells[k] !== ""));
    const columns = ["instruction", "opcode", ...used, "shape", "computation"];
    const head = el("tr", {}, ...columns.map((name) => this.headCell(name)));
    const body = el("tbody", {}, ...rows.slice(0, this.limit).map((i) => this.row(i, columns)));
    const more = rows.length - this.limit;
    const note = this.state.isFiltered() ? "" :
      `${count(rows.length)} instructions move bytes; filters and search cover all ${count(module.count)}. ` +
      "Bytes and time are those of all executions, other figures those of one.";
    this.box.replaceChildren(
      el("p", { className: "note" }, note),
      el("div", { className: "scroll" }, el("table", { attrs: { "aria-label": "Instructions" }, tabIndex: 0 },
        el("thead", {}, head), body)),
      more > 0 ? el("button", { onclick: () => { this.limit += 1000; this.draw(); } }, `${count(more)} more`) : "");
    this.mark();
    this.fit();
  }

  fit() {
    fitColumns(this.box, DISPENSABLE);
  }

  headCell(name) {
    const isSorted = this.sorted.column === name;
    const direction = this.sorted.falling ? "descending" : "ascending";
    const button = el("button", {
      onclick: () => {
        this.sorted = { column: name, falling: isSorted ? !this.sorted.falling : !TEXTS.has(name) };
        this.draw();
      },
    }, name + (isSorted ? (this.sorted.falling ? " ▼" : " ▲") : ""));
    const className = TEXTS.has(name) ? "" : "number";
    return el("th", { className, attrs: { "aria-sort": isSorted ? direction : "none", "data-column": name } }, button);
  }

  row(instruction, columns) {
    const { module } = this.state;
    const cells = module.traffic.get(instruction);
    const share = Math.max(0, module.moved.get(instruction) ?? 0) / module.mostMoved;
    const texts = columns.map((name) => {
      if (name === "instruction") return breakable(module.names[instruction]);
      if (name === "opcode") return module.opcodeOf(instruction);
      if (name === "shape") return breakable(clipped(module.shapeOf(instruction), 60));
      if (name === "computation") return oneLine(module.computations[module.computationOf[instruction]].name);
      const text = cells?.[module.columns.indexOf(name)] ?? "";
      return name === "bytes" && cells !== undefined ? bar(text, share) : text;
    });
    const row = el("tr", { onclick: () => this.state.select(instruction) },
      ...texts.map((text, k) => el("td", { className: columns[k] + (TEXTS.has(columns[k]) ? "" : " number") }, ...[text].flat())));
    row.dataset.instruction = instruction;
    return row;
  }

  onKey(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step === undefined || !event.target.closest("table")) return;
    event.preventDefault();
    const place = this.rows.indexOf(this.state.selected);
    const next = this.rows[Math.min(Math.max(place + step, 0), Math.min(this.rows.length, this.limit) - 1)];
    if (next !== undefined) this.state.select(next);
  }

  mark() {
    this.box.querySelector("tr.selected")?.classList.remove("selected");
    const row = this.box.querySelector(`tr[data-instruction="${this.state.selected}"]`);
    row?.classList.add("selected");
    row?.scrollIntoView({ block: "nearest" });
  }
}
