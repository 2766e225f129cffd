/* The bar of autonomous mode: its clock, announcements for screen readers, and the form that starts a run. */

import { announce, hopeless } from "./base.js";

const SIZES = [86400, 3600, 60, 1];
const words = () => document.getElementById("run-words")?.textContent.replace(/\s+/g, " ").trim() ?? "";
let said = words();

/** The two largest units, as the template filter `lasting` writes them. */
function lasting(seconds, units) {
  const counts = SIZES.map((size, at) => Math.floor((at ? seconds % SIZES[at - 1] : seconds) / size));
  const first = seconds ? counts.findIndex(Boolean) : SIZES.length - 1;
  return counts.map((count, at) => `${count} ${units[at]}`).slice(first, first + 2).join(" ");
}

function tick() {
  for (const clock of document.querySelectorAll("[data-since]")) {
    const seconds = Math.max(0, Math.floor((Date.now() - new Date(clock.dataset.since)) / 1000));
    clock.textContent = lasting(seconds, clock.dataset.units.split(" "));
  }
}
setInterval(tick, 1000);
tick();

document.addEventListener("htmx:wsAfterMessage", () => {
  const now = words();
  if (now !== said && now) announce(now);
  said = now;
  tick();
});

// The form stays open until the run has begun; an error is shown in it.
document.addEventListener("htmx:afterRequest", (event) => {
  const form = event.target;
  if (form.id !== "run-form") return;
  const { xhr } = event.detail;
  if (xhr.status === 204) form.closest("dialog").close();
  else complain(form, xhr.status === 422 ? xhr.responseText : hopeless(xhr.status) ?? form.dataset.failed);
});

function complain(form, text) {
  const note = form.querySelector("#run-error");
  note.textContent = text;
  note.hidden = false;
}
for (const name of ["htmx:responseError", "htmx:sendError"]) {
  document.addEventListener(name, (event) => {
    if (event.target.id === "run-form") event.stopImmediatePropagation();
  }, true);
}
