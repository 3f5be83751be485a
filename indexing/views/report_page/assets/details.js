"use strict";
// The details of the selected instruction.

const HINT = "Select an instruction: click on a node or a row, or search ( / ).";
const MAX_LINKS = 6; // to instructions of the other module

class DetailsView {
  constructor(state) {
    this.state = state;
    this.box = byId("details");
    this.opened = new Map([["Maps", true], ["Bytes", true], ["What a tile reads", true], ["Source", true]]);
    this.request = 0;
  }

  async show() {
    const { module, selected } = this.state;
    const request = ++this.request;
    if (selected === null) {
      const picture = await module.trafficPicture();
      if (request === this.request) this.box.replaceChildren(...this.overview(), picture);
      return;
    }
    const details = await module.details(selected);
    if (request !== this.request) return; // another one was selected in the meantime
    const parts = [this.heading(selected)];
    if (details.fault) parts.push(el("pre", { className: "unknown" }, visible(details.fault)));
    parts.push(...this.sections(selected, details));
    this.box.replaceChildren(...parts);
    this.box.scrollTop = 0;
  }

  overview() {
    const { module } = this.state;
    const [tiled, all] = module.tiled;
    const parts = [
      el("h2", {}, oneLine(module.name)),
      el("pre", { className: "totals" }, module.totals.map(visible).join("\n")),
      ...(module.spaces.length ? [table(module.space_columns, module.spaces)] : []),
      el("p", {}, HINT),
      el("p", { className: "note" },
        "The shade of a node is the bytes that it moves in all executions: from shade to shade, a factor of 4."),
    ];
    if (tiled < all) {
      parts.push(el("p", { className: "note" },
        `Tiles are listed for the ${count(tiled)} of ${count(all)} instructions that move the ` +
        "most bytes; write --tiles N for more."));
    }
    return parts;
  }

  heading(instruction) {
    const { module } = this.state;
    const computation = module.computationOf[instruction];
    const where = el("button", { className: "link", onclick: () => this.state.open(computation) },
      oneLine(module.computations[computation].name));
    const { executions } = module.computations[computation];
    const times = executions === null || executions === "1" ? "" : `, executed ${executions} times`;
    return el("header", {},
      el("h2", {}, ...breakable(module.names[instruction])),
      el("div", { className: "mono" }, `${module.shapeOf(instruction)} ${module.opcodeOf(instruction)}`),
      el("div", { className: "note" }, "in ", where, times), this.corresponding(instruction));
  }

  /** The corresponding instructions of the other module, and how each link was found. */
  corresponding(instruction) {
    const links = this.state.corresponding(instruction);
    if (links.length === 0) return null;
    const reasons = {
      value: "by value", op_name: "by op_name", name: "by name", movement: "by its operand", user: "by its neighbours",
    };
    const shown = links.slice(0, MAX_LINKS).flatMap(([module, other, how], k) =>
      [k === 0 ? "" : ", ", this.state.linkTo(module, other), ` ${reasons[how]}`]);
    const more = links.length > MAX_LINKS ? `, … ${count(links.length - MAX_LINKS)} more` : "";
    return el("div", { className: "note" }, `in ${oneLine(links[0][0].file)}: `, ...shown, more);
  }

  *sections(instruction, details) {
    const { module } = this.state;
    yield this.neighbours(instruction);
    if (details.frames || details.op_name) yield this.section("Source", () => sourceOf(details));
    if (details.traffic) yield this.section("Bytes", () => bytesOf(details.traffic, module, instruction));
    if (details.maps) {
      const { parameters } = module.computations[module.computationOf[instruction]];
      const operands = module.operands[instruction];
      const areParameters = operands.every((each) => parameters.includes(each));
      yield this.section("Maps", () => this.maps("operand", operands, details.maps));
      yield this.section("Maps to parameters", () => areParameters
        ? el("p", { className: "note" }, "All operands are parameters: these are the maps above.")
        : this.maps("parameter", parameters, details.parameters, instruction, "--to parameters"));
      yield this.section("Input-to-output maps", () =>
        this.maps("operand", operands, details.forward, instruction, "--direction input-to-output"));
    }
    for (const tiles of details.tiles ?? []) {
      const output = details.tiles.length > 1 ? ` (output ${tiles.output})` : "";
      yield this.section(`What a tile reads${output}`, () => pictureOf(tiles));
      yield this.section(`Tiles${output}`, () => tileTexts(tiles));
    }
    yield this.section("Text", () => el("pre", {}, visible(details.text)));
    for (const called of module.calls[instruction] ?? []) {
      const name = oneLine(module.computations[called].name);
      yield this.section(`Computation ${name}`, () => this.body(called), "Computation");
    }
  }

  /** A part that is made when it is opened; whether it is open holds for later instructions. */
  section(title, make, key = title.split(" (")[0]) {
    const part = el("details", {}, el("summary", {}, title));
    part.dataset.section = key;
    part.addEventListener("toggle", () => {
      this.opened.set(key, part.open);
      if (part.open && part.childElementCount === 1) part.append(make());
    });
    part.open = this.opened.get(key) ?? false;
    return part;
  }

  neighbours(instruction) {
    const { module } = this.state;
    const list = (title, numbers) => {
      const shown = numbers.slice(0, 30);
      const more = numbers.length - shown.length;
      return el("div", { className: "neighbours" }, el("span", { className: "note" }, `${title} `),
        ...shown.flatMap((each) => [this.link(each), " "]),
        more > 0 ? `… ${count(more)} more` : numbers.length ? "" : "none");
    };
    return el("div", {}, list("operands", module.operands[instruction]),
      list("users", module.users[instruction]));
  }

  link(instruction) {
    const { module } = this.state;
    return el("button", {
      className: "link", title: `${module.opcodeOf(instruction)} ${module.shapeOf(instruction)}`,
      onclick: () => this.state.select(instruction),
    }, ...breakable(module.names[instruction]));
  }

  /** The maps of each output to, or from, numbered arrays; without them, the command that prints them. */
  maps(role, arrays, tables, instruction, option) {
    const { module } = this.state;
    if (tables === undefined) {
      return el("div", {}, el("p", { className: "note" }, "These maps are not part of the page, because the " +
        `module has ${count(module.count)} instructions. This command prints them:`),
        el("pre", {}, `hlo-indexing maps ${oneLine(module.file)} -i ${oneLine(module.names[instruction])} ${option}`));
    }
    const box = el("div", {});
    for (const [output, outputs, shape, rows, more] of tables) {
      if (outputs > 1) box.append(el("h3", {}, `output ${output} ${shape}`));
      for (const row of rows) {
        box.append(el("div", { className: `map ${row.grade}` },
          el("div", { className: "note" }, `${role} ${row.operand} `,
            el("button", { className: "link", onclick: () => this.state.select(arrays[row.operand]) },
              oneLine(row.name)), ` ${row.shape}`),
          el("pre", {}, gradeText(row.grade) + visible(row.text)),
          ...[...(row.runtime ?? []), ...(row.notes ?? [])].map((line) =>
            el("div", { className: "mono indent" }, visible(line)))));
      }
      if (more > 0) box.append(el("p", { className: "note" }, `… ${count(more)} more maps`));
    }
    if (box.childElementCount === 0) box.append(el("p", { className: "note" }, `no ${role} is needed`));
    return box;
  }

  body(called) {
    const { module } = this.state;
    const box = el("div", { className: "body" }, "…");
    const numbers = module.instructionsOf(called);
    const shown = numbers.slice(0, 500);
    Promise.all(shown.map((each) => module.details(each))).then((all) => {
      box.replaceChildren(...all.map((details, k) => el("div", { className: "mono" },
        module.isRoot(shown[k]) ? "ROOT " : "",
        el("button", { className: "link", onclick: () => this.state.select(shown[k]) },
          oneLine(module.names[shown[k]])),
        ` = ${oneLine(details.text.slice(details.text.indexOf(" = ") + 3))}`)));
      const more = numbers.length - shown.length;
      if (more > 0) box.append(el("div", { className: "note" }, `… ${count(more)} more`));
    });
    return box;
  }
}

const gradeText = (grade) => ({ may: "may: ", unknown: "unknown: " })[grade] ?? "";

function sourceOf(details) {
  return el("div", {},
    details.op_name ? el("div", { className: "mono" }, visible(details.op_name)) : null,
    ...(details.frames ?? []).map((frame) => el("div", { className: "mono" }, visible(frame))));
}

/** Tables of the figures that `hlo-indexing bytes --format json` has. */
function bytesOf(record, module, instruction) {
  const number = (value) => (value === null ? "?" : count(value));
  const bound = (value, grade) => (grade === "may" ? "≤ " : "") + number(value);
  const cells = module.traffic.get(instruction);
  const facts = table(["", ""], module.columns.slice(0, -1)
    .map((name, k) => [k ? name : "bytes in all executions", cells[k]])
    .filter(([, cell]) => cell !== ""));
  const most = Math.max(1, ...record.operands.map((each) => each.distinct ?? 0), record.written ?? 0);
  const rows = record.operands.map((each) => [
    each.operand === null ? "constant" : String(each.operand),
    oneLine(each.operand_name) + (each.path.length ? ` {${each.path.join(",")}}` : ""),
    each.shape.text,
    bar(bound(each.distinct, each.distinct_grade), each.distinct / most),
    bound(each.requested, each.requested_grade),
    each.utilisation === null ? "" : `${(100 * each.utilisation).toFixed(each.utilisation < 0.1 ? 2 : 0)} %`,
  ]);
  rows.push(["", "written", "", bar(number(record.written), record.written / most), "", ""]);
  const parts = [facts, el("h3", {}, "Bytes of one execution"),
    table(["operand", "name", "shape", "read", "requested", "of the array"], rows)];
  if (record.spaces.length > 1 || record.spaces.some((each) => each.padding > 0)) {
    const figures = ["elements", "read", "written", "stored", "padding"];
    parts.push(el("h3", {}, "By memory, at most"), table(["memory", ...figures],
      record.spaces.map((each) => [visible(each.name), ...figures.map((figure) => count(each[figure]))])));
  }
  if (record.in_place.length) {
    parts.push(el("p", { className: "note" }, `updated in place: ${record.in_place.map(oneLine).join(", ")}`));
  }
  const again = Object.entries(record.recompute).filter(([, factor]) => factor !== 1);
  if (again.length) {
    const factors = again.map(([name, f]) => `${oneLine(name)} ${f === null ? "?" : f.toPrecision(4)}`);
    parts.push(el("p", { className: "note" }, `evaluations of each element: ${factors.join(", ")}`));
  }
  parts.push(...record.unknown.map((reason) => el("p", { className: "unknown" }, `unknown: ${visible(reason)}`)));
  return el("div", {}, ...parts);
}

/** A cell with a bar behind its text. */
function bar(text, share) {
  const box = el("span", { className: "bar" }, text);
  box.style.setProperty("--share", `${(100 * Math.min(1, Math.max(0, share || 0))).toFixed(1)}%`);
  return box;
}

const isNumber = (cell) => cell instanceof Element ? cell.className === "bar" : /^([≤≥] |[<>]= )?[\d.,]+(e\+?\d+)?( %)?$/.test(cell);
const isRange = (cell) => !(cell instanceof Element) && /^[\d.,]+ to [\d.,]+$/.test(cell);

/** A table, whose columns of numbers are aligned to the right. */
function table(titles, rows) {
  const classes = titles.map((_, k) => rows.some((row) => isRange(row[k])) ? "range" :
    rows.some((row) => isNumber(row[k])) ? "number" : "");
  const classOf = (k) => classes[k];
  const head = titles.some((title) => title !== "")
    ? [el("thead", {}, el("tr", {}, ...titles.map((title, k) => el("th", { className: classOf(k) }, title))))] : [];
  const body = rows.map((row) => el("tr", {}, ...row.map((cell, k) => el("td", { className: classOf(k) }, cell))));
  return el("div", { className: "scroll" }, el("table", {}, ...head, el("tbody", {}, ...body)));
}
