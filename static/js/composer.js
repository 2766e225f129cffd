/* The composer. A typed text is stored in the browser until the server has accepted it. */

import { hopeless } from "./base.js";

const form = document.getElementById("composer");
const text = document.getElementById("composer-text");
const problem = document.getElementById("composer-error");
const sending = document.getElementById("sending");
const draft = `draft-${form.closest("[data-dialog]").dataset.dialog}`;

function complain(words) {
  problem.textContent = words;
  problem.hidden = !words;
}

function grow() {
  if (CSS.supports("field-sizing", "content")) return;
  text.style.height = "auto";
  text.style.height = `${text.scrollHeight}px`;
}

if (!text.value) text.value = sessionStorage.getItem(draft) ?? "";
grow();

function keep() {
  // A very long text may not fit into the browser's storage; it stays in the field.
  try { sessionStorage.setItem(draft, text.value); } catch { sessionStorage.removeItem(draft); }
}

text.addEventListener("input", () => {
  keep();
  complain("");
  grow();
});

// Also where a message is said anew.
document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !event.target.matches("#composer-text, [id^='text-of-']")) return;
  // While an input method composes, Enter chooses a candidate. Safari shows this only by key code 229.
  if (event.shiftKey || event.isComposing || event.keyCode === 229) return;
  event.preventDefault();
  event.target.form.requestSubmit();
});

form.addEventListener("submit", (event) => {
  if (text.value.trim()) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  complain(form.dataset.empty);
}, true);

/* A random token for each sending, so that a text that is sent twice, as no answer came, is stored once. */
function another() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

let sent = "";
let slow = 0;
form.addEventListener("htmx:beforeRequest", () => {
  sent = text.value;
  slow = setTimeout(() => { sending.textContent = sending.dataset.words; }, 1000);
});

form.addEventListener("htmx:afterRequest", (event) => {
  const { successful, xhr } = event.detail;
  clearTimeout(slow);
  sending.textContent = "";
  if (successful && xhr.status === 204) {
    form.elements.sending.value = another();
    // What was typed while it was being sent stays.
    text.value = text.value.startsWith(sent) ? text.value.slice(sent.length) : text.value;
    keep();
    complain("");
    grow();
  } else if ([413, 422].includes(xhr.status)) complain(xhr.responseText);
  else if (!successful) complain(hopeless(xhr.status) ?? form.dataset.failed);
});

// When a message with an open edit form is replaced, its typed text goes into the composer.
const sentEdits = new WeakSet();
document.addEventListener("htmx:beforeRequest", ({ target }) => { if (target.matches(".edit form")) sentEdits.add(target); });
document.addEventListener("htmx:afterRequest", ({ target, detail }) => { if (!detail.successful) sentEdits.delete(target); });
document.addEventListener("htmx:oobBeforeSwap", ({ detail: { target } }) => {
  for (const field of target.querySelectorAll(".edit[open] textarea")) setTimeout(keepTyped, 0, field);
});

function keepTyped(field) {
  if (field.isConnected || sentEdits.has(field.form) || field.value === field.defaultValue) return;
  text.value = text.value ? `${text.value}\n\n${field.value}` : field.value;
  keep();
  grow();
  complain(form.dataset.kept);
}

// The stop button may be replaced before its own request ends, so the focus is moved at the request's end.
document.addEventListener("htmx:beforeSend", ({ target, detail: { xhr } }) => {
  if (target.id !== "stop") return;
  xhr.addEventListener("loadend", () => {
    const { activeElement } = document;
    if (activeElement === document.body || activeElement.closest("#stop")) text.focus();
  });
});

// Errors are shown beside the field, so not at the top of the page too.
for (const name of ["htmx:responseError", "htmx:sendError"]) {
  form.addEventListener(name, (event) => event.stopPropagation());
}
