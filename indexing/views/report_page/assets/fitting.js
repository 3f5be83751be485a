"use strict";
// Tables that need no scrolling sideways: columns that have no room are hidden, and named below.

/**
 * Hide columns until the table fits.
 *
 * `dispensable` has the names of the columns that may be hidden, the first to be hidden first. Cells
 * of the head have their names in `data-column`.
 */
function fitColumns(box, dispensable) {
  const scroll = box.querySelector(".scroll");
  const grid = scroll?.querySelector("table");
  if (!grid) return;
  const heads = [...grid.tHead.rows[0].cells];
  const setHidden = (k, hidden) => { for (const row of grid.rows) row.cells[k].hidden = hidden; };
  heads.forEach((_, k) => setHidden(k, false));
  const hidden = [];
  for (const name of dispensable) {
    if (scroll.scrollWidth <= scroll.clientWidth) break;
    const k = heads.findLastIndex((head) => head.dataset.column === name && !head.hidden);
    if (k < 0) continue;
    setHidden(k, true);
    hidden.push(name);
  }
  scroll.parentElement.querySelector(":scope > .hidden-columns")?.remove();
  if (hidden.length === 0) return;
  scroll.before(el("p", { className: "note hidden-columns" },
    `Columns without room: ${hidden.reverse().join(", ")}. A wider window has them.`));
}

/** Fit the table of the shown view again after the window was resized. */
function fitOnResize(state) {
  let timer;
  new ResizeObserver(() => {
    clearTimeout(timer);
    timer = setTimeout(() => state.fitTables(), 100);
  }).observe(byId("left"));
}
