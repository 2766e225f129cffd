/* The transcript: stays scrolled to the end, copies texts, opens and closes edit forms. */

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
// The end stays visible when a drawer opens, the composer grows, or the window changes.
new ResizeObserver(follow).observe(scroller);
jump.addEventListener("click", () => { atEnd = true; toEnd(); });
document.getElementById("composer")?.addEventListener("submit", () => { atEnd = true; toEnd(); });
// The answer to an edited message comes at the end.
scroller.addEventListener("submit", ({ target }) => { if (target.matches(".edit form")) atEnd = true; });
// After loading an earlier course or a long result the reader stays where they are.
scroller.addEventListener("htmx:beforeSwap", (event) => { if (event.detail.xhr.status === 200) atEnd = false; });
toEnd();

async function copy(button) {
  const from = (selector) => button.closest(".code, article").querySelector(selector);
  // The source text, not the rendered one.
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
  // The menu may be hidden under the composer.
  if (event.target.matches?.("details.message-menu[open]")) event.target.querySelector(".menu-panel").scrollIntoView({ block: "nearest" });
  if (event.target.matches?.("details.edit[open]:not([data-arrived])")) begin(event.target);
}, true);
// A message's edit form is fetched when it is opened.
scroller.addEventListener("htmx:afterSettle", ({ target }) => {
  if (target.matches("details.edit[open]:not([data-arrived]) > .edit-inside")) begin(target.parentElement);
});

document.addEventListener("keydown", (event) => {
  const edit = event.key === "Escape" && event.target.closest?.("details.edit");
  if (!edit) return;
  event.preventDefault();
  leave(edit);
}, true);
