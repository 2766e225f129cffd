/* On every page: close menus, dismiss messages, show errors of requests. */

const messages = () => document.getElementById("messages");

/** Announce a short text to screen readers, each time anew, also if the words are the same. */
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

// What the server sends where it has nothing else to say, every 15 seconds at the latest.
const SIGN_OF_LIFE = "<!---->";
const SILENT_MS = 30_000;

/** Connect anew, and call `lost`, where nothing comes any more though the socket was not closed: as after a sleep. */
export function watchSocket(lost) {
  let open;
  let heard;
  document.addEventListener("htmx:wsOpen", ({ detail }) => { [open, heard] = [detail, Date.now()]; });
  document.addEventListener("htmx:wsClose", () => { open = null; });
  document.addEventListener("htmx:wsBeforeMessage", (event) => {
    heard = Date.now();
    if (event.detail.message === SIGN_OF_LIFE) event.preventDefault();
  });
  setInterval(() => {
    if (!open || Date.now() - heard < SILENT_MS) return;
    const { event: { target: socket }, socketWrapper } = open;
    open = null;
    // Its end, whenever the browser notices it, is not that of the next one.
    socket.onclose = null;
    lost();
    socketWrapper.reconnect();
  }, 1000);
}

// Screen readers announce a status only when it changes, not when it is inserted: so it is announced here.
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

// Without a session every request is answered by the login page: load that as a page.
document.addEventListener("htmx:beforeSwap", (event) => {
  const login = document.body.dataset.loginUrl;
  const came = event.detail.xhr.responseURL;
  if (!login || !came || new URL(came).pathname !== login) return;
  event.detail.shouldSwap = false;
  const here = location.pathname + location.search;
  location.assign(`${login}?next=${encodeURIComponent(here)}`);
});

/** The message for a status that does not change on another try alone. */
export function hopeless(status) {
  const { gone, forbidden, full } = messages()?.dataset ?? {};
  return { 403: forbidden, 404: gone, 507: full }[status];
}

document.addEventListener("htmx:responseError", ({ detail: { xhr } }) => {
  showError(hopeless(xhr.status) ?? messages()?.dataset.failed);
});
document.addEventListener("htmx:sendError", () => showError(messages()?.dataset.offline));
