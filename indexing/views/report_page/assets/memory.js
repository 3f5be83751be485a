"use strict";
// The memory of a module: the peak and the largest buffers of each memory space.

const NUMBERS = new Set(["stored", "padding", "alive"]);

class MemoryView {
  constructor(state) {
    this.state = state;
    this.box = byId("memory-view");
  }

  async draw() {
    const { module } = this.state;
    const memory = await module.memory();
    if (module !== this.state.module) return; // another one was chosen in the meantime
    if (memory.unknown !== undefined) {
      this.box.replaceChildren(el("p", { className: "unknown" }, `unknown: ${visible(memory.unknown)}`));
      return;
    }
    const order = memory.scheduled ? "the order of execution" : "that of the text: the module is not scheduled";
    const note = `Steps are instructions: ${count(memory.steps)}; their order is ${order}. ` +
      "Sizes are those in memory, with padding. A buffer is alive from the first write to the last read.";
    this.box.replaceChildren(el("p", { className: "note" }, note),
      ...memory.spaces.map((space) => this.section(space)),
      ...(memory.picture === null ? [] : [el("div", { className: "picture" }, importedPicture(memory.picture))]));
    this.fit();
  }

  fit() {
    for (const section of this.box.querySelectorAll("section")) fitColumns(section, ["from", "shape", "alive", "kind"]);
  }

  /** The peak of a memory space, what is alive then by kind, and its largest buffers. */
  section(space) {
    const used = space.columns.map((name, k) => [name, k]).filter(([name]) => name !== "");
    const most = Math.max(1, ...space.rows.map(([, bytes]) => bytes));
    const head = el("tr", {}, ...used.map(([name]) =>
      el("th", { className: NUMBERS.has(name) ? "number" : "", attrs: { "data-column": name } }, name)));
    const cell = ([name, k], bytes, cells) => el("td", { className: NUMBERS.has(name) ? `${name} number` : name },
      ...(name === "array" ? [el("button", { className: "link" }, ...breakable(cells[k]))]
        : name === "stored" ? [bar(cells[k], bytes / most)] : breakable(cells[k])));
    const rows = space.rows.map(([instruction, bytes, ...cells]) => {
      const row = el("tr", { onclick: () => this.state.select(instruction) },
        ...used.map((column) => cell(column, bytes, cells)));
      row.dataset.instruction = instruction;
      return row;
    });
    return el("section", {}, el("h3", {}, visible(space.title)), el("p", {}, visible(space.shares)),
      el("div", { className: "scroll" }, el("table", { attrs: { "aria-label": visible(space.title) } },
        el("thead", {}, head), el("tbody", {}, ...rows))),
      space.rest === "" ? null : el("p", { className: "note" }, space.rest));
  }
}
