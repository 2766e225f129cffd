/* The list of dialogs: arrow keys move between rows, Escape cancels renaming, replaced elements keep the focus. */

import { announce, watchSocket } from "./base.js";

const rows = () => [...document.querySelectorAll(".dialogs .row-title")];
let focused = "";

function step(from, by) {
  const all = rows();
  const at = all.indexOf(from);
  all[at < 0 ? 0 : Math.min(Math.max(at + by, 0), all.length - 1)]?.focus();
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") event.target.closest?.(".rename")?.querySelector("[data-cancel]")?.click();
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!by || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
  // In menus and selects the arrow keys do something else.
  if (!event.target.matches("body, main, #search, .row-title")) return;
  event.preventDefault();
  step(event.target, by);
});

// Search and filters apply at once: the button is for pages without this script.
for (const button of document.querySelectorAll(".search > .button")) button.hidden = true;
document.querySelector(".search").addEventListener("htmx:afterRequest", ({ detail: { successful } }) => {
  if (successful) announce(document.getElementById("dialogs").dataset.shown);
});

document.addEventListener("htmx:wsBeforeMessage", () => { focused = document.activeElement?.id; });
document.addEventListener("htmx:wsAfterMessage", () => {
  if (focused && document.activeElement === document.body) document.getElementById(focused)?.focus();
});

// An action in a row replaces the list: the row keeps the focus, else the row in its place; a title field is selected.
let row = "";
let place = -1;
document.addEventListener("htmx:beforeSwap", () => {
  row = document.activeElement?.closest(".dialogs .row")?.id;
  place = [...document.querySelectorAll(".dialogs .row")].findIndex(({ id }) => id === row);
});
document.addEventListener("htmx:afterSettle", () => {
  if (place < 0) return;
  const next = document.querySelector(`#${row} .row-title`) ?? rows()[place] ?? rows().at(-1);
  if (document.activeElement === document.body) (next ?? document.getElementById("search")).focus();
  document.querySelector(".rename > [name=title]:focus")?.select();
  place = -1;
});
watchSocket(() => {});
document.addEventListener("htmx:wsClose", (event) => {
  const { event: { code }, socketWrapper } = event.detail;
  // Signed out: the reloaded page shows it.
  if (code === 4401) location.reload();
  // htmx reconnects by itself after a failure, but not after a normal close.
  else if ([1000, 1001, 1005].includes(code)) setTimeout(socketWrapper.reconnect, 1000 + 2000 * Math.random());
});

// Forms that came by the socket have no CSRF token: the page's is in the body's hx-headers.
document.addEventListener("submit", ({ target }) => {
  if (target.method !== "post" || target.elements.csrfmiddlewaretoken) return;
  const token = document.createElement("input");
  token.type = "hidden";
  token.name = "csrfmiddlewaretoken";
  token.value = JSON.parse(document.body.getAttribute("hx-headers"))["X-CSRFToken"];
  target.append(token);
}, true);
