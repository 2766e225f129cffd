/* The tour of a sample: its note is put beside the element that it is about, if there is room; else it stays above the
   composer. Its buttons are a form, so the tour works without this script. */

import { announce } from "./base.js";

const GAP = 10;
const narrow = matchMedia("(max-width: 60rem)");
const tour = () => document.getElementById("tour");
let said = "";

const isShown = (element) => !element.closest("[hidden]") && element.getClientRects().length > 0;

/** The element of the first selector that matches a visible one; of several matches the last, which is the newest. */
function thing() {
  for (const selector of tour().dataset.beside?.split("|") ?? []) {
    const found = [...document.querySelectorAll(selector)].filter(isShown).at(-1);
    if (found) return found;
  }
  return null;
}

function mark(target) {
  for (const other of document.querySelectorAll(".tour-thing")) if (other !== target) other.classList.remove("tour-thing");
  target?.classList.add("tour-thing");
}

/** A place where the note does not cover its element: beside a narrow one, else below, else above. */
function spot(thing, note) {
  const most = innerWidth - note.width - GAP;
  if (thing.width < note.width && thing.right + note.width + 2 * GAP < innerWidth) {
    return [thing.right + GAP, Math.min(thing.top, innerHeight - note.height - GAP)];
  }
  const left = Math.max(GAP, Math.min(thing.left + thing.width / 2 - note.width / 2, most));
  const below = thing.bottom + GAP;
  return [left, below + note.height < innerHeight - GAP ? below : thing.top - GAP - note.height];
}

function place() {
  const note = tour()?.querySelector(".tour-note");
  if (!note) return mark(null);
  const target = thing();
  mark(target);
  note.classList.remove("tour-beside");
  if (!target || narrow.matches) return;
  note.classList.add("tour-beside");
  const where = target.getBoundingClientRect();
  const [left, top] = spot(where, note.getBoundingClientRect());
  const isSeen = where.bottom > 0 && where.top < innerHeight && top > 0;
  note.classList.toggle("tour-beside", isSeen);
  // The note has no id: for an element with one, htmx would set a style attribute, which the CSP forbids.
  note.style.setProperty("left", `${left}px`);
  note.style.setProperty("top", `${top}px`);
}

function show() {
  const target = thing();
  if (target?.matches("details")) target.open = true;
  target?.scrollIntoView({ block: "center" });
  place();
}

/** At a new stop: announce it and scroll to its element, after transcript.js has scrolled to the end. */
function look() {
  const words = tour()?.querySelector(".tour-words")?.textContent.trim() ?? "";
  if (words && words !== said) {
    if (said) announce(words);
    setTimeout(show);
  }
  said = words;
  place();
}

if (tour()) {
  document.addEventListener("htmx:wsAfterMessage", look);
  document.addEventListener("scroll", place, true);
  addEventListener("resize", place);
  look();
}
