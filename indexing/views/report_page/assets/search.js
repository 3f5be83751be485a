"use strict";
// The search: parts of texts, or globs of the shell; and the list below its field.

/**
 * Return the tests of a search, for texts and for shapes.
 *
 * A search with `*` or `?` is a glob of the shell, which the whole text matches; another one is a part
 * of the text. In globs for shapes, brackets stand for themselves. Capital and small letters are the
 * same.
 */
function searchTests(wanted) {
  if (searchTests.wanted === wanted) return searchTests.tests;
  const small = wanted.toLowerCase();
  const isGlob = /[*?]/.test(wanted);
  const test = (pattern) => (text) => pattern.test(text.toLowerCase());
  const includes = (text) => text.toLowerCase().includes(small);
  searchTests.wanted = wanted;
  searchTests.tests = isGlob
    ? { text: test(globPattern(small, true)), shape: test(globPattern(small, false)) }
    : { text: includes, shape: includes };
  return searchTests.tests;
}

/** Return the regular expression of a glob: `*`, `?`, and with sets `[abc]`, `[a-z]` and `[!abc]`. */
function globPattern(glob, hasSets) {
  const part = hasSets ? /\*|\?|\[(!?)(\]?[^\]]*)\]|[^*?[]+|\[/gs : /\*|\?|[^*?]+/gs;
  const source = [...glob.matchAll(part)].map(([text, not, members]) => {
    if (text === "*") return ".*";
    if (text === "?") return ".";
    if (members === undefined || members === "") return text.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&");
    return `[${not ? "^" : ""}${members.replaceAll(/[\\\]^[]/g, "\\$&")}]`;
  }).join("");
  try {
    return new RegExp(`^${source}$`, "su");
  } catch {
    return /(?!)/; // a range that ends before it starts matches nothing
  }
}

/** The list below the search field; arrow keys and Enter select from it. */
class Search {
  constructor(state) {
    this.state = state;
    this.input = byId("search");
    this.list = byId("results");
    this.place = -1;
    this.input.addEventListener("input", () => this.changed());
    this.input.addEventListener("keydown", (event) => this.onKey(event));
    this.input.addEventListener("blur", () => setTimeout(() => this.close(), 150));
    addEventListener("keydown", (event) => {
      const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName);
      if (event.key !== "/" || isTyping) return;
      event.preventDefault();
      this.input.focus();
      this.input.select();
    });
  }

  changed() {
    const { state } = this;
    clearTimeout(this.timer);
    state.filter.text = this.input.value.trim();
    this.timer = setTimeout(() => { this.fill(); state.filtered(); }, 120);
  }

  fill() {
    const { module, filter } = this.state;
    this.found = [];
    if (filter.text !== "") {
      for (let i = 0; i < module.count && this.found.length < 40; i++) {
        if (module.matches(i, filter)) this.found.push(i);
      }
    }
    this.place = -1;
    this.list.replaceChildren(...this.found.map((i, k) => el("div", {
      attrs: { role: "option", id: `result-${k}` },
      onpointerdown: (event) => { event.preventDefault(); this.take(k); },
    }, el("b", {}, oneLine(module.names[i])),
      ` ${module.opcodeOf(i)} ${clipped(module.shapeOf(i), 40)} in ` +
      oneLine(module.computations[module.computationOf[i]].name))));
    this.list.hidden = this.found.length === 0 || document.activeElement !== this.input;
    this.input.setAttribute("aria-expanded", !this.list.hidden);
  }

  onKey(event) {
    if (event.key === "Escape") this.close();
    if (event.key === "Enter") {
      event.preventDefault();
      clearTimeout(this.timer);
      this.fill();
      this.take(Math.max(this.place, 0));
    }
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step === undefined || this.list.hidden) return;
    event.preventDefault();
    this.place = Math.min(Math.max(this.place + step, 0), this.found.length - 1);
    [...this.list.children].forEach((each, k) => each.setAttribute("aria-selected", k === this.place));
    this.input.setAttribute("aria-activedescendant", `result-${this.place}`);
    this.list.children[this.place].scrollIntoView({ block: "nearest" });
  }

  take(k) {
    const instruction = this.found[k];
    this.close();
    if (instruction === undefined) return;
    this.state.select(instruction);
    if (this.state.view !== "graph") return;
    this.input.value = this.state.filter.text = ""; // otherwise, most of the neighbours are dimmed
    this.state.filtered();
  }

  close() {
    this.list.hidden = true;
    this.input.setAttribute("aria-expanded", false);
  }
}
