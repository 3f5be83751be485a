"use strict";
// The instructions of a computation in groups: the hierarchy of their `op_name`, as in Model Explorer.

const MAX_UNGROUPED = 40; // a smaller computation is drawn without groups
const FEW_PARTS = 6; // fewer are no overview: the largest is opened
const MAX_FIRST_PARTS = 16;
const MAX_DIRECT = 12; // more instructions of one scope are grouped by their operations

/** Return the parts of an `op_name` between slashes outside of parentheses; without one, the opcode. */
function scopesOf(opName, opcode) {
  const text = opName.split(";")[0];
  if (text === "") return ["no op_name", opcode];
  const parts = [""];
  let depth = 0;
  for (const c of text) {
    if ("([{".includes(c)) depth++;
    else if (")]}".includes(c)) depth = Math.max(depth - 1, 0);
    if (c === "/" && depth === 0) parts.push("");
    else parts[parts.length - 1] += c;
  }
  return parts.filter((part) => part !== "");
}

/** A group of instructions: those of one scope, or of one operation in a scope. */
class Group {
  constructor(name, parent) {
    this.name = name;
    this.parent = parent;
    this.path = parent === null ? "" : `${parent.path}/${name}`;
    this.groups = new Map();
    this.instructions = []; // those of no inner group
    this.count = 0;
    this.bytes = 0;
  }

  inner(name) {
    if (!this.groups.has(name)) this.groups.set(name, new Group(name, this));
    return this.groups.get(name);
  }

  /** The parts of the group, those that move the most bytes first. */
  parts(bytesOf) {
    const parts = [...this.groups.values(), ...this.instructions];
    const weight = (part) => (part instanceof Group ? part.bytes : bytesOf(part));
    return parts.sort((a, b) => weight(b) - weight(a));
  }
}

/** The groups of some instructions of a computation. */
class GroupTree {
  constructor(module, instructions) {
    this.module = module;
    this.root = new Group("", null);
    this.groupOf = new Map();
    for (const i of instructions) {
      const scopes = scopesOf(module.op_names[module.op_name[i]], module.opcodeOf(i));
      const group = scopes.slice(0, -1).reduce((own, name) => own.inner(name), this.root);
      group.instructions.push(i);
    }
    this.arrange(this.root);
    this.sum(this.root);
  }

  bytesOf(instruction) {
    const moved = this.module.moved.get(instruction) ?? 0;
    return Number.isFinite(moved) ? moved : 0;
  }

  /** Group the direct instructions of a large group by their operations. */
  arrange(group) {
    const { module } = this;
    for (const inner of group.groups.values()) this.arrange(inner);
    if (group.instructions.length <= MAX_DIRECT) return;
    const byName = new Map();
    for (const i of group.instructions) {
      const name = scopesOf(module.op_names[module.op_name[i]], module.opcodeOf(i)).at(-1);
      if (!byName.has(name)) byName.set(name, []);
      byName.get(name).push(i);
    }
    if (byName.size === 1 && group.groups.size === 0) return;
    group.instructions = [];
    for (const [name, own] of byName) {
      if (own.length > 1) group.inner(name).instructions.push(...own);
      else group.instructions.push(...own);
    }
  }

  /** Count the instructions and bytes of each group; a group of one instruction is dissolved. */
  sum(group) {
    for (const [name, inner] of [...group.groups]) {
      this.sum(inner);
      if (inner.count === 1) {
        group.groups.delete(name);
        group.instructions.push(...inner.instructions);
      }
    }
    group.count = group.instructions.length;
    group.bytes = group.instructions.reduce((sum, i) => sum + this.bytesOf(i), 0);
    for (const i of group.instructions) this.groupOf.set(i, group);
    for (const inner of group.groups.values()) {
      group.count += inner.count;
      group.bytes += inner.bytes;
    }
  }

  /** The groups to open at first: the largest ones, as long as few parts are drawn. */
  openedFirst() {
    const opened = new Set([""]);
    const closed = [...this.root.groups.values()];
    let drawn = closed.length + this.root.instructions.length;
    while (drawn < FEW_PARTS && closed.length > 0) {
      closed.sort((a, b) => a.count - b.count);
      const group = closed.pop();
      const parts = group.groups.size + group.instructions.length;
      if (drawn - 1 + parts > MAX_FIRST_PARTS && drawn > 1) continue;
      opened.add(group.path);
      closed.push(...group.groups.values());
      drawn += parts - 1;
    }
    return opened;
  }

  /** The paths of the groups around an instruction, from the outermost. */
  around(instruction) {
    const paths = [];
    for (let group = this.groupOf.get(instruction); group; group = group.parent) paths.push(group.path);
    return paths.reverse();
  }
}
