/* The menus of messages: the entries are in the page once, and are copied into a menu when it is opened. */

const model = document.getElementById("message-actions");

/** All entries, with the ids of this message in their attributes. */
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

// On click, before it opens, since its height decides whether it opens upwards. Keys cause clicks too.
document.addEventListener("click", (event) => {
  const menu = event.target.closest(".message-menu[data-message] > summary")?.parentElement;
  if (menu) fill(menu);
}, true);
