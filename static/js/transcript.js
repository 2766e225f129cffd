/* Reading: stay at the end while at the end, copy, close edits. Focus is never moved by what arrives. */

import { showError } from "./base.js";
import { copyText, sayCopied } from "./clipboard.js";

const scroller = document.getElementById("scroller");
const jump = document.getElementById("jump");
const words = document.getElementById("words").dataset;
let atEnd = true;

const toEnd = () => { scroller.scrollTop = scroller.scrollHeight; };
const seesEnd = () => scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 48;

function follow() {
  if (atEnd) toEnd();
  jump.hidden = seesEnd();
}

scroller.addEventListener("scroll", () => {
  atEnd = seesEnd();
  jump.hidden = atEnd;
}, { passive: true });

new MutationObserver(follow).observe(scroller, { childList: true, subtree: true, characterData: true });
// A drawer that opens, a field that grows, a window that turns: the end stays in sight.
new ResizeObserver(follow).observe(scroller);
jump.addEventListener("click", () => { atEnd = true; toEnd(); });
document.getElementById("composer")?.addEventListener("submit", () => { atEnd = true; toEnd(); });
// What is said anew is answered there.
scroller.addEventListener("submit", ({ target }) => { if (target.matches(".edit form")) atEnd = true; });
// What the reader asked for is where they are: an earlier course, a long result.
scroller.addEventListener("htmx:beforeSwap", (event) => { if (event.detail.xhr.status === 200) atEnd = false; });
toEnd();

async function copy(button) {
  const from = (selector) => button.closest(".code, article").querySelector(selector);
  // As it was written, not as it is drawn.
  const source = button.dataset.copy === "code" ? from("pre") : from("template.source")?.content ?? from(".message-text");
  await copyText(source.textContent);
  sayCopied(button, words.copied);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy]");
  if (button) copy(button).catch(() => showError(words.notCopied));
  const close = event.target.closest("[data-close-edit]");
  if (!close) return;
  event.preventDefault();
  leave(close.closest("details"));
});

function leave(edit) {
  edit.open = false;
  edit.querySelector("summary").focus();
}

function begin(edit) {
  edit.querySelector("textarea")?.focus();
  edit.scrollIntoView({ block: "nearest" });
}

document.addEventListener("toggle", (event) => {
  // What is under the composer is not in sight.
  if (event.target.matches?.("details.message-menu[open]")) event.target.querySelector(".menu-panel").scrollIntoView({ block: "nearest" });
  if (event.target.matches?.("details.edit[open]:not([data-arrived])")) begin(event.target);
}, true);
// The form of a message is fetched.
scroller.addEventListener("htmx:afterSettle", ({ target }) => {
  if (target.matches("details.edit[open]:not([data-arrived]) > .edit-inside")) begin(target.parentElement);
});

document.addEventListener("keydown", (event) => {
  const edit = event.key === "Escape" && event.target.closest?.("details.edit");
  if (!edit) return;
  event.preventDefault();
  leave(edit);
}, true);
