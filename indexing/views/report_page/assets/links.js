"use strict";
// Deep links: the fragment of the address names the selected instruction, and opens it.

/** Return the parts of a fragment such as "#instruction=dot.3&computation=main&module=1". */
function linkOf(fragment) {
  const parts = {};
  for (const part of fragment.replace(/^#/, "").split("&")) {
    const [name, value = ""] = part.split("=");
    try {
      parts[name] = decodeURIComponent(value);
    } catch {
      parts[name] = value; // no escapes
    }
  }
  return parts;
}

/** Return the instruction that COMPUTATION/NAME names, as the command prints it. */
function inComputation(module, path) {
  const slash = path.indexOf("/");
  return slash < 0 ? undefined : module.named(path.slice(slash + 1), path.slice(0, slash));
}

class Links {
  constructor(state) {
    this.state = state;
    addEventListener("hashchange", () => this.open());
  }

  /** Select the instruction of the address, if it has one; return whether it was found. */
  open() {
    const { state } = this;
    const link = linkOf(location.hash);
    if (link.view !== undefined && VIEWS.includes(link.view)) state.show(link.view);
    if (link.instruction === undefined) return link.view !== undefined;
    const numbers = link.module === undefined
      ? [state.module, ...state.modules].map((module) => module.number)
      : [Number(link.module)];
    for (const module of numbers.map((k) => state.modules[k]).filter((each) => each !== undefined)) {
      const instruction = module.named(link.instruction, link.computation) ?? inComputation(module, link.instruction);
      if (instruction === undefined) continue;
      if (instruction === state.selected && module === state.module) return true;
      byId("modules").value = module.number;
      if (module !== state.module) state.use(module);
      if (link.view === undefined && state.view !== "table") state.show("graph");
      state.select(instruction);
      return true;
    }
    byId("matching").textContent = `no instruction ${oneLine(link.instruction)}`;
    return false;
  }

  /** Write the selected instruction into the address. */
  write() {
    const { module, modules, selected } = this.state;
    const parts = [];
    if (selected !== null) {
      const name = module.names[selected];
      const computation = module.computations[module.computationOf[selected]].name;
      parts.push(`instruction=${encodeURIComponent(name)}`);
      if (module.named(name) !== selected) parts.push(`computation=${encodeURIComponent(computation)}`);
      if (modules.length > 1) parts.push(`module=${module.number}`);
    }
    history.replaceState(null, "", `#${parts.join("&")}`);
  }
}
