/* The notebook's forms: errors beside the form, and undo for a removed reminder. */

import { announce, hopeless } from "./base.js";

const drawer = document.getElementById("notebook-drawer");
const undo = document.getElementById("notebook-undo");
const { failed, offline } = document.getElementById("messages").dataset;

// The socket does not replace edit forms. When one is opened and its text has changed since, it gets the new text.
drawer.addEventListener("click", (event) => {
  const edit = event.target.closest("details.edit > summary")?.parentElement;
  if (!edit || edit.open) return;
  const now = edit.closest("[data-version]");
  const version = edit.querySelector("[name=version]");
  complain(edit, "");
  if (version.value === now.dataset.version) return;
  edit.querySelector("textarea").value = now.querySelector("template.source").content.textContent;
  version.value = now.dataset.version;
});

// When a reminder with an open edit form is removed, its typed text goes into the form for a new one.
document.addEventListener("htmx:oobBeforeSwap", ({ detail: { target, fragment } }) => {
  if (target.id !== "notebook") return;
  for (const edit of target.querySelectorAll(".reminder details.edit[open]")) {
    const reminder = edit.closest(".reminder");
    if (!fragment.getElementById(reminder.id)) setTimeout(keepTyped, 0, reminder, edit.querySelector("textarea").value);
  }
});

function keepTyped(reminder, typed) {
  const text = document.getElementById("reminder-add-text");
  if (!typed.trim() || typed === reminder.querySelector("template.source").content.textContent) return;
  text.value = text.value ? `${text.value}\n\n${typed}` : typed;
  text.focus();
  const note = document.getElementById("notebook-error");
  complain(undo, note.dataset.kept.replace("%s", reminder.querySelector("b").textContent));
}

/** Show an error beside the form, or at the drawer's foot if the form has no place for it, or is gone. */
function complain(form, text) {
  const note = form.querySelector(".error-note") ?? document.getElementById("notebook-error");
  note.textContent = text;
  note.hidden = !text;
}

function offerUndo(number) {
  const words = undo.dataset.words.replace("%s", number);
  undo.dataset.number = number;
  undo.querySelector("span").textContent = words;
  undo.hidden = false;
  undo.querySelector("button").focus();
  announce(words);
}

undo.querySelector("button").addEventListener("click", () => {
  document.getElementById(`reminder-restore-${undo.dataset.number}`)?.requestSubmit();
  document.getElementById("reminder-add-text").focus();
});

function done(form, sent) {
  const text = form.querySelector("textarea");
  const edit = form.closest("details.edit");
  if (edit) {
    edit.open = false;
    edit.querySelector("summary").focus();
  // What was typed while it was being sent stays.
  } else if (text?.value === sent) text.value = "";
}

// On the request, not on the form: the socket may have replaced the form before the response, and events of a removed
// element do not bubble.
drawer.addEventListener("htmx:beforeSend", ({ detail: { xhr, requestConfig } }) => {
  xhr.addEventListener("loadend", () => answered(xhr, requestConfig));
});

function answered(xhr, requestConfig) {
  const form = requestConfig.elt;
  const successful = xhr.status >= 200 && xhr.status < 400;
  const refused = [413, 422].includes(xhr.status) ? xhr.responseText : hopeless(xhr.status) ?? failed;
  undo.hidden = true;
  complain(undo, "");
  complain(drawer.contains(form) ? form : undo, successful ? "" : xhr.status ? refused : offline);
  if (!successful) return;
  done(form, requestConfig.formData.get("content"));
  if (form.dataset.removes) offerUndo(form.dataset.removes);
}

// Errors are shown in the drawer, so not at the top of the page too.
for (const name of ["htmx:responseError", "htmx:sendError"]) {
  document.addEventListener(name, (event) => {
    if (drawer.contains(event.target)) event.stopImmediatePropagation();
  }, true);
}
