/* Opens any <dialog> that a request puts into #confirm-slot, and empties the slot when it closes. */

const slot = document.getElementById("confirm-slot");
let opener = null;

/* In a form with [data-keeps] typed values are stored in the browser until the server has accepted them. */
const WORDS = "textarea, input[type=number]";
const draftOf = (field) => `draft-${field.form.getAttribute("action")}-${field.name}`;

function keepWords(form) {
  for (const field of form.querySelectorAll(WORDS)) {
    field.value = sessionStorage.getItem(draftOf(field)) ?? field.value;
    field.addEventListener("input", () => sessionStorage.setItem(draftOf(field), field.value));
  }
}

document.addEventListener("htmx:afterRequest", ({ target, detail }) => {
  if (!target.matches("[data-keeps]") || !detail.successful) return;
  for (const field of target.querySelectorAll(WORDS)) sessionStorage.removeItem(draftOf(field));
});

function open(dialog) {
  opener = document.activeElement?.closest("details.menu")?.querySelector("summary") ?? document.activeElement;
  let sent = false;
  dialog.addEventListener("close", () => {
    // A sent form stays in the page, hidden, until its response: htmx swaps relative to it.
    if (!sent) slot.replaceChildren();
    if (opener?.isConnected) opener.focus();
  });
  for (const button of dialog.querySelectorAll("[data-close]")) {
    button.addEventListener("click", (event) => {
      event.preventDefault();
      dialog.close();
    });
  }
  dialog.addEventListener("submit", (event) => {
    // A form whose input may be refused stays open until its response.
    if (event.target.matches("[data-stay]")) return;
    sent = true;
    setTimeout(() => dialog.close());
  });
  for (const form of dialog.querySelectorAll("[data-keeps]")) keepWords(form);
  for (const menu of document.querySelectorAll("details.menu[open]")) menu.open = false;
  dialog.showModal();
}

if (slot) {
  new MutationObserver(() => {
    const dialog = slot.querySelector("dialog:not([open])");
    if (dialog) open(dialog);
  }).observe(slot, { childList: true });
}
