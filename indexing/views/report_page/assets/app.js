"use strict";
// The state of the page, and its controls.

const VIEWS = ["graph", "table", "memory", "kernels", "changes"];

class State {
  constructor(data) {
    this.data = data;
    this.modules = data.modules.map((each, number) =>
      new ModuleData({ ...each, columns: data.columns }, number));
    this.module = this.modules[0];
    this.computation = 0;
    this.selected = null;
    this.view = "graph";
    this.filter = { text: "", opcode: "", kind: "", least: 0 };
    this.isStale = { graph: true, table: true, memory: true, kernels: true, changes: true };
    this.graph = new GraphView(this);
    this.table = new TableView(this);
    this.memory = new MemoryView(this);
    this.kernels = new KernelsView(this);
    this.details = new DetailsView(this);
    this.links = new Links(this);
  }

  isFiltered() {
    const { text, opcode, kind, least } = this.filter;
    return text !== "" || opcode !== "" || kind !== "" || least > 0;
  }

  select(instruction) {
    this.selected = instruction;
    const computation = this.module.computationOf[instruction];
    if (computation !== this.computation && !this.isUnfolded(instruction)) {
      this.computation = computation;
      this.isStale.graph = true;
    }
    this.refresh();
    this.details.show();
    this.links.write();
  }

  /** A button that goes to an instruction of a module. */
  linkTo(module, instruction) {
    return el("button", {
      className: "link", onclick: () => {
        byId("modules").value = module.number;
        if (this.module !== module) this.use(module);
        this.show("graph");
        this.select(instruction);
      },
    }, oneLine(module.names[instruction]));
  }

  /** The instructions of the other module that correspond to one: `[module, instruction, how]` of each. */
  corresponding(instruction) {
    const { comparisons } = this.data;
    const [comparison] = comparisons;
    if (comparisons.length !== 1 || comparison.links.length === 0) return [];
    const side = comparison.modules.indexOf(this.module.number);
    this.linked ??= [0, 1].map((k) => {
      const links = new Map();
      for (const link of comparison.links) links.set(link[k], [...(links.get(link[k]) ?? []), link]);
      return links;
    });
    const other = this.modules[comparison.modules[1 - side]];
    return (this.linked[side]?.get(instruction) ?? []).map((link) => [other, link[1 - side], link[2]]);
  }

  /** Hide the columns of tables that have no room. */
  fitTables() {
    if (this.view === "table") this.table.fit();
    else if (this.view === "memory") this.memory.fit();
    else if (this.view === "kernels") this.kernels.fit();
  }

  /** True if an instruction is drawn in the fusion that calls its computation. */
  isUnfolded(instruction) {
    return byId("graph").querySelector(`[data-path$="/${instruction}"]`) !== null;
  }

  open(computation) {
    this.computation = computation;
    this.isStale.graph = true;
    if (this.selected !== null && this.module.computationOf[this.selected] !== computation) {
      this.selected = null;
      this.details.show();
    }
    this.show("graph");
  }

  show(view) {
    this.view = view;
    for (const name of VIEWS) {
      byId(`${name}-view`).hidden = name !== view;
      byId(`tab-${name}`).setAttribute("aria-selected", name === view);
      byId(`tab-${name}`).tabIndex = name === view ? 0 : -1;
    }
    this.refresh();
  }

  refresh() {
    if (this.view === "graph") {
      showComputation(this);
      if (this.isStale.graph) this.graph.draw();
      else this.graph.show();
    } else if (this.view === "table") {
      if (this.isStale.table) this.table.draw();
      else this.table.mark();
    } else if (this.view === "memory") {
      if (this.isStale.memory) this.memory.draw();
    } else if (this.view === "kernels") {
      if (this.isStale.kernels) this.kernels.draw();
    } else if (this.isStale.changes) {
      byId("changes-view").replaceChildren(changesOf(this));
    }
    this.isStale[this.view] = false;
  }

  filtered() {
    this.isStale.graph = this.isStale.table = true;
    this.table.limit = ROWS;
    const matching = this.isFiltered()
      ? this.module.names.reduce((sum, _, i) => sum + this.module.matches(i, this.filter), 0) : null;
    byId("matching").textContent = matching === null ? "" :
      `${count(matching)} of ${count(this.module.count)} instructions`;
    this.refresh();
  }

  use(module) {
    this.module = module;
    this.computation = 0;
    this.selected = null;
    this.graph.restart();
    this.isStale.memory = this.isStale.kernels = true;
    fillFilters(this);
    showFacts(this);
    this.filtered();
    this.details.show();
  }
}

function option(value, text) {
  return el("option", { value }, oneLine(text));
}

function fillFilters(state) {
  const { module, data } = state;
  const counts = new Map();
  for (const opcode of module.opcode) counts.set(opcode, (counts.get(opcode) ?? 0) + 1);
  const opcodes = [...counts].sort((a, b) => b[1] - a[1]);
  byId("opcode").replaceChildren(option("", "all"),
    ...opcodes.map(([k, n]) => option(k, `${module.opcodes[k]} (${count(n)})`)));
  const kinds = Object.entries(data.kinds);
  byId("kind").replaceChildren(option("", "all"), ...kinds.map(([kind], k) => option(k, kind)));
  kinds.forEach(([, meaning], k) => { byId("kind").options[k + 1].title = meaning; });
  byId("computation").replaceChildren(...module.computations.map((c, k) => {
    const role = k === 0 ? "ENTRY " : c.executions === null ? "" : "executed: ";
    return option(k, `${role}${c.name} (${count(c.count)})`);
  }));
}

function showFacts(state) {
  const { module } = state;
  byId("facts").textContent = `HloModule ${oneLine(module.name)}: ${count(module.count)} instructions ` +
    `in ${count(module.computations.length)} computations`;
}

function showComputation(state) {
  const { module, computation } = state;
  byId("computation").value = computation;
  const callers = module.callers[computation];
  const links = callers.slice(0, 4).flatMap((each) => [state.details.link(each), " "]);
  const more = callers.length > 4 ? `… ${count(callers.length - 4)} more` : "";
  byId("callers").replaceChildren(...(callers.length ? ["called by ", ...links, more] : []));
}

/** The comparisons: the only one, or a part for each that is filled when it is opened. */
function changesOf(state) {
  const { comparisons } = state.data;
  const box = el("div", {});
  const note = el("p", { className: "note" }, "Instructions correspond by proved-equal values, by op_name, or by " +
    "name; those that only have a link by their operands or users are listed as removed or added. " +
    "Of modules with more than 4,096 instructions, values are equal only if the same operations compute them. " +
    "Metadata are not compared. Maps are listed for the first 100 instructions of a comparison. " +
    (comparisons.some(({ modules }) => modules.includes(null))
      ? "The graph, the table and all other details are those of the last module." : ""));
  if (comparisons.length === 1) {
    box.append(el("h2", {}, oneLine(comparisons[0].title)), note);
    comparisonOf(state, 0).then((part) => box.append(part));
    return box;
  }
  box.append(el("h2", {}, `Passes that change the module: ${count(comparisons.length)}`), note);
  comparisons.forEach((each, k) => {
    const { changed, renamed, removed, added } = each.counts;
    const summary = el("summary", {}, el("span", { className: `badge ${each.verdict}` }, each.verdict), " ",
      oneLine(each.title), el("span", { className: "note" },
        `  ${count(changed)} changed, ${count(renamed)} renamed, ${count(removed)} removed, ${count(added)} added`));
    const part = el("details", {}, summary);
    part.addEventListener("toggle", async () => {
      if (part.open && part.childElementCount === 1) part.append(await comparisonOf(state, k));
    });
    box.append(part);
  });
  return box;
}

/** The verdict of a comparison, and the instructions that were changed, removed and added. */
async function comparisonOf(state, number) {
  const comparison = state.data.comparisons[number];
  const changes = await unpacked(`changes-${number}`);
  const [before, after] = comparison.modules.map((k) => (k === null ? null : state.modules[k]));
  const box = el("div", {}, el("pre", { className: `verdict ${comparison.verdict}` },
    comparison.lines.map(visible).join("\n")));
  const link = (module, [computation, name]) => {
    const instruction = module?.find(computation, name);
    return instruction === undefined ? el("b", { className: "mono" }, oneLine(name))
      : state.linkTo(module, instruction);
  };
  const list = (title, rows) => {
    const shown = rows.slice(0, 500);
    const part = el("details", { open: rows.length > 0 && rows.length <= 60 },
      el("summary", {}, `${title}: ${count(rows.length)}`));
    part.append(...shown.map((row) => {
      const [computation, , opcode, texts, maps] = row;
      return el("div", { className: "change" }, link(texts[1] === null ? before : after, row),
        el("span", { className: "note" }, ` ${oneLine(opcode)} in ${oneLine(computation)}`),
        ...texts.map((text, k) => signed(k, text === null ? null : oneLine(text))), ...mapsOf(maps));
    }));
    if (rows.length > shown.length) part.append(`… ${count(rows.length - shown.length)} more`);
    return part;
  };
  box.append(...Object.entries(changes).map(([kind, rows]) => list(kind, rows)));
  return box;
}

/** A text of the module before (0) or after (1) a change; nothing for an instruction that it lacks. */
function signed(side, text) {
  return text === null ? "" : el("pre", { className: ["removed", "added"][side] }, `${"-+"[side]} ${text}`);
}

/** The maps before and after a change, or that they are equal; nothing where they are not listed. */
function* mapsOf([before, after]) {
  if (before === null && after === null) return;
  const texts = [before, after].map((lines) => (lines === null ? null : lines.map(visible).join("\n  ")));
  if (texts[0] === texts[1]) {
    yield el("div", { className: "note" }, "The maps to the operands are equal.");
    return;
  }
  yield el("details", {}, el("summary", { className: "note" }, "maps"), ...texts.map((text, k) => signed(k, text)));
}

function bindControls(state) {
  for (const view of VIEWS) {
    byId(`tab-${view}`).onclick = () => state.show(view);
    byId(`tab-${view}`).onkeydown = (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (step === undefined) return;
      const open = VIEWS.filter((each) => !byId(`tab-${each}`).hidden);
      const next = open[(open.indexOf(view) + step + open.length) % open.length];
      state.show(next);
      byId(`tab-${next}`).focus();
    };
  }
  byId("computation").onchange = (event) => state.open(Number(event.target.value));
  byId("opcode").onchange = (event) => { state.filter.opcode = event.target.value; state.filtered(); };
  byId("kind").onchange = (event) => { state.filter.kind = event.target.value; state.filtered(); };
  byId("least").oninput = (event) => {
    state.filter.least = Number(event.target.value.replaceAll(/[,_\s]/g, "")) || 0;
    state.filtered();
  };
  byId("filters").onsubmit = (event) => event.preventDefault();
  byId("filters").onreset = () => {
    state.filter = { text: "", opcode: "", kind: "", least: 0 };
    state.filtered();
  };
  const modules = byId("modules");
  modules.replaceChildren(...state.modules.map((each, k) => option(k, each.file)));
  modules.hidden = state.modules.length < 2;
  modules.onchange = () => state.use(state.modules[Number(modules.value)]);
  const theme = byId("theme");
  theme.replaceChildren(...THEMES.map((each) => option(each, each)));
  theme.value = document.documentElement.dataset.theme;
  theme.onchange = () => setTheme(theme.value);
  byId("tab-kernels").hidden = state.modules.every(({ kernels }) => kernels === 0);
  byId("tab-changes").hidden = state.data.comparisons.length === 0;
}

async function start() {
  const state = start.state = new State(await unpacked("structure"));
  new Search(state);
  bindControls(state);
  fillFilters(state);
  showFacts(state);
  fitOnResize(state);
  state.show(state.data.comparisons.length === 0 ? "graph" : "changes");
  state.links.open();
  await state.details.show();
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
}

start();
