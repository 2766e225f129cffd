/* The settings page: dragging the rows of the chain, and limits that follow the default. Without scripts: buttons. */

const page = document.getElementById("main");

// --- Dragging: the row moves at once; then the server renders the form again, with new buttons.
let dragged = null;
let order = "";

const places = () => [...document.querySelectorAll("#chain input")].map((input) => input.value).join();

page.addEventListener("dragstart", (event) => {
  dragged = event.target.closest?.(".chain-link") ?? null;
  if (!dragged) return;
  order = places();
  event.dataTransfer.effectAllowed = "move";
  // After the browser has taken the drag image, which would be empty otherwise.
  requestAnimationFrame(() => dragged?.classList.add("dragged"));
});

page.addEventListener("dragover", (event) => {
  const over = dragged && event.target.closest?.(".chain-link");
  if (!over) return;
  event.preventDefault();
  if (over === dragged) return;
  const { top, height } = over.getBoundingClientRect();
  over[event.clientY < top + height / 2 ? "before" : "after"](dragged);
});

page.addEventListener("drop", (event) => {
  if (dragged) event.preventDefault();
});

page.addEventListener("dragend", () => {
  dragged?.classList.remove("dragged");
  if (dragged && places() !== order) document.getElementById("chain-refresh").click();
  dragged = null;
});

// --- "Follow default": the field is disabled and shows the default; its own value is kept in a hidden field.
page.addEventListener("change", (event) => {
  const row = event.target.matches?.("[type=checkbox]") && event.target.closest("[data-llm]");
  if (!row) return;
  const limit = row.querySelectorAll("input[type=text]")[1];
  const kept = row.querySelector("input[type=hidden]");
  if (event.target.checked) kept.value = limit.value;
  limit.value = event.target.checked ? "" : kept.value;
  limit.disabled = event.target.checked;
  if (!limit.disabled) limit.focus();
});

page.addEventListener("input", (event) => {
  if (event.target.name !== "default_limit") return;
  for (const limit of document.querySelectorAll("[data-llm] input:disabled")) limit.placeholder = event.target.value;
});
