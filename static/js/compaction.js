/* The compaction card: animates its bar, announces phases, hides itself after a success; failures are closed by hand. */

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

/** Animate the bar from its last width: the element was replaced, so the browser does not know it. */
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

/** Does somebody read it? Details count only if the person opened them. */
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

// The server sends a hidden card after a success: ignored while somebody reads the card.
document.addEventListener("htmx:oobBeforeSwap", (event) => {
  if (event.target.id !== ID || card().hidden || !isInUse(card())) return;
  if (event.detail.fragment.firstElementChild?.hidden) event.detail.shouldSwap = false;
});

document.addEventListener("click", (event) => {
  const summary = event.target.closest("#compaction-summary");
  // Runs before it opens or closes.
  if (summary) unfolded = !summary.parentElement.open;
  if (!event.target.closest("#compaction-close")) return;
  localStorage.setItem(key, state);
  card().hidden = true;
  document.getElementById("composer-text")?.focus();
});

look();
wait();
