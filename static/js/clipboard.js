/* Copying a text, also on a page without HTTPS. */

import { announce } from "./base.js";

/** For pages without HTTPS, as in a home network, to which browsers offer no clipboard. */
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

/** Show on the button for a moment that the text is copied. */
export function sayCopied(button, words) {
  const label = button.textContent;
  button.textContent = words;
  announce(words);
  setTimeout(() => { button.textContent = label; }, 1500);
}
