/* Buttons that copy a key, an address or a command line; and the focus for a field with an error. */

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
