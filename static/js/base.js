/* What every page does: menus that close, messages that go away, errors of requests that are shown. */

const messages = () => document.getElementById("messages");

/** Say something short to people who hear the page. */
export function announce(text) {
  const region = document.getElementById("live-region");
  if (region) region.textContent = text;
}

/** Show an error where the server's own messages appear. */
export function showError(text) {
  const area = messages();
  if (!area || !text) return;
  const note = document.createElement("p");
  note.className = "message message-error";
  const words = document.createElement("span");
  words.textContent = text;
  note.append(words);
  area.replaceChildren(note);
}

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

// Without this script a message has no button that does nothing.
function revealDismiss() {
  for (const button of document.querySelectorAll("[data-dismiss][hidden]")) button.hidden = false;
}
revealDismiss();
document.addEventListener("htmx:afterSettle", revealDismiss);

// A session that ended answers every request with the login page: go there as a whole.
document.addEventListener("htmx:beforeSwap", (event) => {
  const login = document.body.dataset.loginUrl;
  const came = event.detail.xhr.responseURL;
  if (!login || !came || new URL(came).pathname !== login) return;
  event.detail.shouldSwap = false;
  const here = location.pathname + location.search;
  location.assign(`${login}?next=${encodeURIComponent(here)}`);
});

document.addEventListener("htmx:responseError", (event) => {
  const { failed, gone, forbidden } = messages()?.dataset ?? {};
  const { status } = event.detail.xhr;
  showError({ 403: forbidden, 404: gone }[status] ?? failed);
});
document.addEventListener("htmx:sendError", () => showError(messages()?.dataset.offline));
