/* The list of dialogs: Escape leaves a name as it was; the search button is for pages without this script. */

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  event.target.closest?.(".rename")?.querySelector("[data-cancel]")?.click();
});

for (const button of document.querySelectorAll(".search > .button")) button.hidden = true;
