/* What every page does: menus that close, messages that go away, errors of requests that are shown. */

const messages = () => document.getElementById("messages");

/** Say something short to people who hear the page: each time, also in the same words, and beside what else is said. */
export function announce(text) {
  const news = document.createElement("p");
  news.textContent = text;
  document.getElementById("live-region").append(news);
  setTimeout(() => news.remove(), 5000);
}

/** Show an error where the server's own messages appear. */
export function showError(text) {
  const area = messages();
  if (!area || !text) return;
  const model = area.querySelector("template");
  const note = model.content.cloneNode(true);
  note.querySelector("span").textContent = text;
  area.replaceChildren(model, note);
}

// A status that was fetched would not be heard: it is heard where it changes.
document.addEventListener("htmx:load", ({ target }) => {
  if (target === document.body) return;
  for (const status of target.querySelectorAll("[role=status]:not(:empty)")) announce(status.textContent.trim());
});

function closeMenus(except) {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!except || !menu.contains(except)) menu.open = false;
  }
}

// A menu low on the screen opens upwards.
document.addEventListener("toggle", (event) => {
  const menu = event.target;
  if (!menu.matches("details.menu")) return;
  menu.classList.remove("menu-up");
  if (!menu.open) return;
  const panel = menu.querySelector(".menu-panel")?.getBoundingClientRect();
  if (panel && panel.bottom > innerHeight && panel.height < menu.getBoundingClientRect().top) menu.classList.add("menu-up");
}, true);

document.addEventListener("click", (event) => {
  closeMenus(event.target);
  const dismiss = event.target.closest("[data-dismiss]");
  if (dismiss) dismiss.closest(".message").remove();
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  const menu = document.querySelector("details.menu[open]");
  if (!menu) return;
  menu.open = false;
  menu.querySelector("summary").focus();
  event.stopPropagation();
}, true);

// A session that ended answers every request with the login page: go there as a whole.
document.addEventListener("htmx:beforeSwap", (event) => {
  const login = document.body.dataset.loginUrl;
  const came = event.detail.xhr.responseURL;
  if (!login || !came || new URL(came).pathname !== login) return;
  event.detail.shouldSwap = false;
  const here = location.pathname + location.search;
  location.assign(`${login}?next=${encodeURIComponent(here)}`);
});

/** What to say of a refusal that trying again does not help. */
export function hopeless(status) {
  const { gone, forbidden } = messages()?.dataset ?? {};
  return { 403: forbidden, 404: gone }[status];
}

document.addEventListener("htmx:responseError", ({ detail: { xhr } }) => {
  showError(hopeless(xhr.status) ?? messages()?.dataset.failed);
});
document.addEventListener("htmx:sendError", () => showError(messages()?.dataset.offline));
