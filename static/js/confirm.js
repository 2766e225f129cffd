/* Opens any <dialog> that a request puts into #confirm-slot, and empties the slot when it closes. */

const slot = document.getElementById("confirm-slot");
let opener = null;

function open(dialog) {
  opener = document.activeElement?.closest("details.menu")?.querySelector("summary") ?? document.activeElement;
  dialog.addEventListener("close", () => {
    slot.replaceChildren();
    if (opener?.isConnected) opener.focus();
  });
  for (const button of dialog.querySelectorAll("[data-close]")) {
    button.addEventListener("click", (event) => {
      event.preventDefault();
      dialog.close();
    });
  }
  dialog.addEventListener("submit", () => setTimeout(() => dialog.close()));
  for (const menu of document.querySelectorAll("details.menu[open]")) menu.open = false;
  dialog.showModal();
}

if (slot) {
  new MutationObserver(() => {
    const dialog = slot.querySelector("dialog:not([open])");
    if (dialog) open(dialog);
  }).observe(slot, { childList: true });
}
