/* Copying a text, wherever the page came from. */

import { announce } from "./base.js";

/** Browsers offer the clipboard to secure pages only: a house network has none. */
function copyTheOldWay(text) {
  const field = document.createElement("textarea");
  field.value = text;
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  if (!done) throw new Error("copy");
}

export async function copyText(text) {
  if (navigator.clipboard) await navigator.clipboard.writeText(text);
  else copyTheOldWay(text);
}

/** The button says for a moment that it is done. */
export function sayCopied(button, words) {
  const label = button.textContent;
  button.textContent = words;
  announce(words);
  setTimeout(() => { button.textContent = label; }, 1500);
}
