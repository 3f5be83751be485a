"use strict";
// The theme of the page: "auto", as the reader prefers, or a chosen one, which the browser keeps.

const THEME_KEY = "hlo-indexing-theme";
const THEMES = ["auto", "light", "dark"];

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem(THEME_KEY, theme);
  } catch {
    // The browser stores nothing for this page: the choice ends with it.
  }
}

function keptTheme() {
  try {
    const kept = localStorage.getItem(THEME_KEY);
    return THEMES.includes(kept) ? kept : "auto";
  } catch {
    return "auto";
  }
}

document.documentElement.dataset.theme = keptTheme(); // before the page is painted
