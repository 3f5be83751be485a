"use strict";
// The data of the page: the structure of each module, and the details of instructions on demand.

/** Return an element with properties, attributes (in `attrs`) and children; text is never HTML. */
function el(tag, props = {}, ...children) {
  const { attrs = {}, ...rest } = props;
  const node = Object.assign(document.createElement(tag), rest);
  for (const [name, value] of Object.entries(attrs)) node.setAttribute(name, value);
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

/** Return an SVG element with attributes and children. */
function svg(tag, attrs = {}, ...children) {
  const node = document.createElementNS("http:" + "//www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attrs)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

const byId = (id) => document.getElementById(id);
const count = (number) => number.toLocaleString("en-US");

/** Return text with control and directional characters as escapes, so that they cannot mislead. */
function visible(text) {
  return text.replace(
    /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g,
    (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"),
  );
}

/** Return text without line breaks. */
const oneLine = (text) => visible(text.replaceAll("\n", "\\n"));

/** The parts of a name or a shape: where a line has no room for it, it breaks between words and numbers. */
const breakable = (text) => oneLine(text).split(/(?<=[_/,-])|(?<=\.)(?!\d)/).flatMap((part) => [part, el("wbr")]).slice(0, -1);

/** Return a picture of the package: SVG, whose texts are escaped. */
function importedPicture(text) {
  const parsed = new DOMParser().parseFromString(text, "image/svg+xml");
  return document.importNode(parsed.documentElement, true);
}

/** Decompress the JSON of a script element, and release its text. */
async function unpacked(id) {
  const script = byId(id);
  const binary = atob(script.textContent);
  script.textContent = "";
  const bytes = Uint8Array.from(binary, (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

/** A module: columns of its instructions, with operands, users and callers as numbers. */
class ModuleData {
  constructor(data, number) {
    Object.assign(this, data);
    this.number = number;
    this.count = this.names.length;
    this.firsts = [];
    let first = 0;
    for (const computation of this.computations) {
      this.firsts.push(first);
      first += computation.count;
    }
    this.computationOf = new Int32Array(this.count);
    this.computations.forEach((c, k) => {
      this.computationOf.fill(k, this.firsts[k], this.firsts[k] + c.count);
    });
    this.users = Array.from({ length: this.count }, () => []);
    this.operands.forEach((own, user) => {
      for (const operand of new Set(own)) this.users[operand].push(user);
    });
    this.callers = this.computations.map(() => []);
    for (const [caller, called] of Object.entries(this.calls)) {
      for (const each of new Set(called)) this.callers[each].push(Number(caller));
    }
    this.traffic = new Map(this.traffic.map(([instruction, ...cells]) => [instruction, cells]));
    this.moved = new Map();
    for (const [instruction, cells] of this.traffic) {
      this.moved.set(instruction, numberIn(cells[0]));
    }
    this.mostMoved = Math.max(1, ...[...this.moved.values()].filter(Number.isFinite));
    this.loaded = new Map();
  }

  /** The numbers of the instructions of a computation. */
  instructionsOf(computation) {
    const first = this.firsts[computation];
    return Array.from({ length: this.computations[computation].count }, (_, k) => first + k);
  }

  /** The first instruction of a name, in ENTRY or else in another computation; or undefined. */
  named(name, computation) {
    if (computation !== undefined) return this.find(computation, name);
    const place = this.names.indexOf(name); // ENTRY is the first computation
    return place < 0 ? undefined : place;
  }

  /** The instruction of a name in a computation, or undefined. */
  find(computation, name) {
    const k = this.computations.findIndex((each) => each.name === computation);
    return k < 0 ? undefined : this.instructionsOf(k).find((each) => this.names[each] === name);
  }

  opcodeOf(instruction) {
    return this.opcodes[this.opcode[instruction]];
  }

  shapeOf(instruction) {
    return this.shapes[this.shape[instruction]];
  }

  isRoot(instruction) {
    return this.computations[this.computationOf[instruction]].root === instruction;
  }

  /** Load the details of an instruction; a chunk is decompressed once. */
  async details(instruction) {
    let chunk = this.chunks.findLastIndex((first) => first <= instruction);
    if (!this.loaded.has(chunk)) this.loaded.set(chunk, unpacked(`details-${this.number}-${chunk}`));
    return (await this.loaded.get(chunk))[instruction - this.chunks[chunk]];
  }

  /** The picture of the traffic: SVG of the package, whose texts are escaped. */
  async trafficPicture() {
    this.picture ??= unpacked(`traffic-${this.number}`);
    return el("div", { className: "picture" }, importedPicture(await this.picture));
  }

  /** The peaks and the buffers of the memory spaces. */
  memory() {
    this.buffers ??= unpacked(`memory-${this.number}`);
    return this.buffers;
  }

  /** The kernels that were dumped with the module, with their verdicts and sectors. */
  emitted() {
    this.panel ??= unpacked(`kernels-${this.number}`);
    return this.panel;
  }

  /** True if an instruction meets the filters. */
  matches(instruction, filter) {
    if (filter.opcode !== "" && this.opcode[instruction] !== Number(filter.opcode)) return false;
    if (filter.kind !== "" && !((this.kinds[instruction] ?? 0) & (1 << Number(filter.kind)))) return false;
    if (filter.least > 0 && !(this.bytesOf(instruction) >= filter.least)) return false;
    if (filter.text === "") return true;
    const { text, shape } = searchTests(filter.text);
    return (
      text(this.names[instruction]) || text(this.opcodeOf(instruction)) ||
      shape(this.shapeOf(instruction)) || text(this.op_names[this.op_name[instruction]])
    );
  }

  /** The bytes that an instruction moves, or, if it moves none, those of its result. */
  bytesOf(instruction) {
    return this.moved.get(instruction) ?? this.size[instruction] ?? Infinity;
  }
}

const UNITS = { s: 1, ms: 1e-3, us: 1e-6, ns: 1e-9 };

/** Return the number in a cell such as "<= 1,024" or "625 ns"; Infinity for an unknown one. */
function numberIn(cell) {
  if (cell === "") return -1;
  const match = /([\d,.]+(?:e[+-]?\d+)?)(?: (s|ms|us|ns)\b)?/.exec(cell);
  return match === null ? Infinity : Number(match[1].replaceAll(",", "")) * (UNITS[match[2]] ?? 1);
}
