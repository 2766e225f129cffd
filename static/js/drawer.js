/* Drawers: each a <dialog> beside the page or, on phones, over it. A button's aria-controls names its drawer.
   The socket replaces buttons and the drawers' content: open details are opened again. */

const narrow = matchMedia("(max-width: 40rem)");
const drawers = [...document.querySelectorAll("dialog.drawer")];
const opener = (drawer) => document.querySelector(`[aria-controls="${drawer.id}"]`);
const unfolded = new Set();

function tell() {
  for (const drawer of drawers) opener(drawer)?.setAttribute("aria-expanded", String(drawer.open));
  for (const details of document.querySelectorAll("details[data-stays-open]")) details.open = unfolded.has(details.id);
}

/** Only one drawer is open at a time. */
function open(drawer) {
  for (const other of drawers) other.close();
  if (narrow.matches) drawer.showModal();
  else drawer.show();
  tell();
}

function close(drawer) {
  drawer.close();
  opener(drawer)?.focus();
}

document.addEventListener("click", (event) => {
  const button = event.target.closest('[aria-controls$="-drawer"]');
  const closer = event.target.closest("[data-close-drawer]");
  if (!button && !closer) return;
  event.preventDefault();
  const drawer = closer?.closest("dialog") ?? document.getElementById(button.getAttribute("aria-controls"));
  if (drawer.open) close(drawer);
  else open(drawer);
});

document.addEventListener("keydown", (event) => {
  const drawer = drawers.find((one) => one.open);
  // Escape closes an open edit form first.
  if (event.key !== "Escape" || !drawer || event.target.closest("details.edit[open]")) return;
  event.preventDefault();
  event.stopPropagation();
  close(drawer);
}, true);

document.addEventListener("toggle", ({ target }) => {
  if (!target.matches("details[data-stays-open]")) return;
  if (target.open) unfolded.add(target.id);
  else unfolded.delete(target.id);
}, true);

// On phones Back closes what lies over the page, and does not leave it: an entry of the history stands for it.
const over = () => [...document.querySelectorAll("dialog:modal")].at(-1);
new MutationObserver(() => {
  if (narrow.matches && over() && !history.state?.over) history.pushState({ over: true }, "");
  else if (!over() && history.state?.over) history.back();
}).observe(document.body, { subtree: true, attributeFilter: ["open"] });
window.addEventListener("popstate", () => over()?.close());

// A link that is followed from there takes the place of that entry: else it would cost a second Back. At the window, after
// all who may have prevented it.
window.addEventListener("click", (event) => {
  const link = event.target.closest("dialog:modal a[href]");
  const isPlain = !(event.defaultPrevented || event.ctrlKey || event.metaKey || event.shiftKey);
  if (!link || !isPlain || !history.state?.over || link.target || link.hasAttribute("download")) return;
  event.preventDefault();
  location.replace(link.href);
});

for (const drawer of drawers) drawer.addEventListener("close", tell);
document.addEventListener("htmx:wsAfterMessage", tell);
tell();
