/* Opens and closes the health drawer. The socket replaces the meter and the panel: what is open stays open. */

const narrow = matchMedia("(max-width: 40rem)");
const drawer = () => document.getElementById("health-drawer");
const button = () => document.querySelector("#meter .meter-button");
let tableOpen = false;

function tell() {
  button()?.setAttribute("aria-expanded", String(drawer()?.open ?? false));
  const table = document.getElementById("health-table");
  if (table) table.open = tableOpen;
}

function open() {
  if (narrow.matches) drawer().showModal();
  else drawer().show();
  tell();
}

function close() {
  drawer().close();
  button()?.focus();
}

document.addEventListener("click", (event) => {
  if (event.target.closest(".meter-button")) {
    if (drawer().open) close();
    else open();
  } else if (event.target.closest("[data-close-drawer]")) close();
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || !drawer()?.open) return;
  event.preventDefault();
  event.stopPropagation();
  close();
}, true);

document.addEventListener("toggle", (event) => {
  if (event.target.id === "health-table") tableOpen = event.target.open;
}, true);

drawer()?.addEventListener("close", tell);
document.addEventListener("htmx:wsAfterMessage", tell);
