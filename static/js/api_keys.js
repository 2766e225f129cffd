/* The buttons that copy a key, an address, a line for the terminal; and to the field that must be put right. */

import { showError } from "./base.js";
import { copyText, sayCopied } from "./clipboard.js";

function reveal() {
  for (const button of document.querySelectorAll("[data-copies][hidden]")) button.hidden = false;
  document.querySelector(".key-form [aria-invalid]")?.focus();
}
reveal();
document.addEventListener("htmx:afterSettle", reveal);

async function copy(button) {
  await copyText(document.getElementById(button.dataset.copies).textContent);
  sayCopied(button, button.dataset.copied);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copies]");
  if (button) copy(button).catch(() => showError(button.dataset.notCopied));
});
