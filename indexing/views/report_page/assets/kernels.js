"use strict";
// The kernels of a module: their verdicts, their launches, and the sectors that warps touch.

class KernelsView {
  constructor(state) {
    this.state = state;
    this.box = byId("kernels-view");
  }

  async draw() {
    const { module } = this.state;
    const kernels = await module.emitted();
    if (module !== this.state.module) return; // another one was chosen in the meantime
    if (kernels.rows.length === 0) {
      this.box.replaceChildren(el("p", { className: "note" }, "No kernel was dumped with this module."));
      return;
    }
    const note = "Each kernel is compared with its fusion. Sectors are those that all warps touch, by the threads, " +
      `blocks and loops of the kernel, on ${kernels.device}; ideal: the fewest with room for the bytes that each warp ` +
      "requests; %: ideal / touched.";
    const head = el("tr", {}, ...kernels.columns.map((name, k) =>
      el("th", { className: k > 2 ? "number" : "", attrs: { "data-column": name } }, name)));
    this.box.replaceChildren(el("h3", {}, kernels.title), el("p", { className: "note" }, note),
      el("div", { className: "scroll" }, el("table", { attrs: { "aria-label": "Kernels" } },
        el("thead", {}, head), el("tbody", {}, ...kernels.rows.map((row) => this.row(row))))),
      ...kernels.notes.map((text) => el("p", { className: "note" }, oneLine(text))));
    this.fit();
  }

  fit() {
    fitColumns(this.box, ["shared bytes", "%", "ideal", "kind", "threads", "ideal", "%", "blocks"]);
  }

  /** A kernel; a click selects its fusion. */
  row([instruction, verdict, ...cells]) {
    const cell = (text, k) => el("td", { className: k === 2 ? verdict : k > 2 ? "number" : "" },
      k === 0 && instruction !== null ? el("button", { className: "link" }, oneLine(text)) : oneLine(text));
    const row = el("tr", {}, ...cells.map(cell));
    if (instruction !== null) {
      row.dataset.instruction = instruction;
      row.onclick = () => this.state.select(instruction);
    }
    return row;
  }
}
