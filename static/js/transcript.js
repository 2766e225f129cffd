/* Reading: stay at the end while at the end, copy, close edits. Focus is never moved by what arrives. */

import { announce, showError } from "./base.js";

const scroller = document.getElementById("scroller");
const jump = document.getElementById("jump");
const words = document.getElementById("words").dataset;
let atEnd = true;

const toEnd = () => { scroller.scrollTop = scroller.scrollHeight; };

scroller.addEventListener("scroll", () => {
  atEnd = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 48;
  jump.hidden = atEnd;
}, { passive: true });

new MutationObserver(() => { if (atEnd) toEnd(); else jump.hidden = false; })
  .observe(scroller, { childList: true, subtree: true, characterData: true });
jump.addEventListener("click", () => { atEnd = true; toEnd(); });
document.getElementById("composer").addEventListener("submit", () => { atEnd = true; toEnd(); });
toEnd();

async function copy(button) {
  const source = button.dataset.copy === "code"
    ? button.closest(".code").querySelector("pre")
    : button.closest("article").querySelector("[data-copy-source]");
  const label = button.textContent;
  await navigator.clipboard.writeText(source.innerText);
  button.textContent = words.copied;
  announce(words.copied);
  setTimeout(() => { button.textContent = label; }, 1500);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy]");
  if (button) copy(button).catch((error) => showError(String(error)));
  event.target.closest("[data-close-edit]")?.closest("details").removeAttribute("open");
});

document.addEventListener("toggle", (event) => {
  if (event.target.matches?.("details.edit[open]")) event.target.querySelector("textarea").focus();
}, true);

document.addEventListener("keydown", (event) => {
  const edit = event.key === "Escape" && event.target.closest?.("details.edit");
  if (!edit) return;
  event.preventDefault();
  edit.open = false;
  edit.querySelector("summary").focus();
}, true);
