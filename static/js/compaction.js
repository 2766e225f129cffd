/* The card of compaction: its bar moves, phases are spoken, a success goes by itself, other ends when they are closed. */

import { announce } from "./base.js";

const ID = "compaction-card";
const card = () => document.getElementById(ID);
const stateOf = ({ run, phase } = {}) => (run ? `${run} ${phase}` : "");
const key = `compaction-closed-${document.querySelector("[data-dialog]")?.dataset.dialog}`;
let state = stateOf(card().dataset);
let width = fill()?.getAttribute("width");
let unfolded = null;
let timer;

function fill() {
  return document.getElementById("compaction-fill");
}

/** From where the bar was to where it is: it was replaced, so the browser does not know. */
function glide() {
  const bar = fill();
  const wanted = bar?.getAttribute("width");
  if (bar && width && width !== wanted) {
    bar.setAttribute("width", width);
    bar.getBoundingClientRect();
    bar.setAttribute("width", wanted);
  }
  width = wanted;
}

/** Not while somebody reads it. Details that were open from the start are no sign of that. */
function isInUse(shown) {
  return shown.matches(":hover, :focus-within") || Boolean(unfolded && shown.querySelector("details[open]"));
}

function hide() {
  const shown = card();
  if (isInUse(shown)) timer = setTimeout(hide, 1000);
  else shown.hidden = true;
}

function look() {
  const shown = card();
  const now = stateOf(shown.dataset);
  const details = document.getElementById("compaction-details");
  if (details && unfolded !== null) details.open = unfolded;
  if (localStorage.getItem(key) === now) shown.hidden = true;
  const close = document.getElementById("compaction-close");
  if (close) close.hidden = false;
  glide();
  return now;
}

function wait() {
  clearTimeout(timer);
  const seconds = Number(card().dataset.hidesAfter);
  if (seconds) timer = setTimeout(hide, seconds * 1000);
}

document.addEventListener("htmx:wsAfterMessage", () => {
  const now = look();
  if (now === state) return;
  state = now;
  if (now && !card().hidden) announce(card().dataset.message);
  wait();
});

// The server hides a success too, in time; whoever reads it keeps it.
document.addEventListener("htmx:oobBeforeSwap", (event) => {
  if (event.target.id !== ID || card().hidden || !isInUse(card())) return;
  if (event.detail.fragment.firstElementChild?.hidden) event.detail.shouldSwap = false;
});

document.addEventListener("click", (event) => {
  const summary = event.target.closest("#compaction-summary");
  // Before it opens or closes.
  if (summary) unfolded = !summary.parentElement.open;
  if (!event.target.closest("#compaction-close")) return;
  localStorage.setItem(key, state);
  card().hidden = true;
  document.getElementById("composer-text")?.focus();
});

look();
wait();
