/* Editing the title in place. */

const edit = document.getElementById("title-edit");
const summary = edit.querySelector("summary");
const field = edit.querySelector("input[name=title]");

edit.addEventListener("toggle", () => {
  if (!edit.open) return;
  // The socket may have changed the title since.
  field.value = document.getElementById("dialog-title").dataset.title;
  field.select();
});

edit.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || !edit.open) return;
  event.preventDefault();
  edit.open = false;
  summary.focus();
});

document.addEventListener("click", (event) => {
  const rename = event.target.closest("[data-rename]");
  if (rename) {
    event.preventDefault();
    rename.closest("details.menu").open = false;
    edit.open = true;
    return;
  }
  if (!edit.contains(event.target)) edit.open = false;
});
