/* The menu of a message: its entries come with the page once, and are put into a row's menu when that is opened. */

const model = document.getElementById("message-actions");

/** All entries, with the numbers of this message in their addresses and ids. */
function entriesOf({ message, generation = "" }) {
  const entries = model.content.cloneNode(true);
  for (const entry of entries.querySelectorAll("*")) {
    for (const attribute of entry.attributes) {
      attribute.value = attribute.value.replace(model.dataset.message, message).replace(model.dataset.generation, generation);
    }
  }
  return entries;
}

function fill(menu) {
  const { is, priority = "", area = "" } = menu.dataset;
  const states = is.split(" ");
  const entries = entriesOf(menu.dataset);
  entries.querySelector("[name=priority]").value = priority;
  entries.querySelector("[name=area]").value = area;
  for (const entry of entries.querySelectorAll("[data-only]")) {
    if (states.includes(entry.dataset.only)) entry.hidden = false;
    else entry.remove();
  }
  const panel = menu.querySelector(".menu-panel");
  panel.replaceChildren(entries);
  htmx.process(panel);
  delete menu.dataset.message;
}

// Before it opens: how high it is decides whether it opens upwards. Keys click a summary too.
document.addEventListener("click", (event) => {
  const menu = event.target.closest(".message-menu[data-message] > summary")?.parentElement;
  if (menu) fill(menu);
}, true);
