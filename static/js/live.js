/* The socket's state, clocks that tick in the page, and Esc, which stops. What it brings is swapped by htmx. */

import { announce, showError } from "./base.js";

const connection = document.getElementById("connection");
const words = document.getElementById("words").dataset;
const WAIT_MS = 3000;
let connected = false;
let focused = [];
const isBusy = () => document.getElementById("turn").hasAttribute("data-busy");
let wasBusy = isBusy();

document.addEventListener("htmx:wsOpen", () => {
  connected = true;
  connection.textContent = "";
});
document.addEventListener("htmx:wsClose", (event) => {
  const { event: { code }, socketWrapper } = event.detail;
  connected = false;
  connection.textContent = connection.dataset.lost;
  // Signed out, or the dialog is gone: the page itself says which.
  if ([4401, 4404].includes(code)) location.reload();
  // More than a socket takes: the page brings it.
  else if (code === 4413) setTimeout(() => location.reload(), WAIT_MS);
  // htmx comes back by itself after a failure, not after a server that said goodbye.
  else if ([1000, 1001, 1005].includes(code)) setTimeout(socketWrapper.reconnect, 1000 + 2000 * Math.random());
});

// What had the focus and was replaced keeps it; where it stood in a menu that has closed, the menu gets it. Who goes by
// keys and whose button is gone goes on where they write.
function refocus(element) {
  element?.focus();
  if (document.activeElement === document.body) element?.closest("details")?.querySelector("summary").focus();
}
document.addEventListener("htmx:wsBeforeMessage", () => {
  const active = document.activeElement;
  // The entries of a message's menu are not there before it is opened.
  const menu = active?.closest(".message-menu")?.querySelector("summary");
  const after = active?.matches(":focus-visible") && document.getElementById("composer-text");
  focused = [active?.id, menu?.id, after?.id].filter(Boolean);
});
document.addEventListener("htmx:wsAfterMessage", () => {
  if (focused.length && document.activeElement === document.body) {
    refocus(focused.map((id) => document.getElementById(id)).find(Boolean));
  }
  if (wasBusy && !isBusy()) tellEnd();
  wasBusy = isBusy();
  document.title = `${document.getElementById("dialog-title").textContent} · Dominds`;
  tick();
});

/** Once for a turn, however many rounds of tools it had. What failed is an alert, and says so itself. */
function tellEnd() {
  const asked = document.querySelector(".question[data-status=pending]");
  if (asked) announce(`${asked.getAttribute("aria-label")}: ${asked.querySelector(".question-text").textContent}`);
  else if (!document.querySelector("#rows > .attempt-row:last-child")) announce(words.replied);
}

// Without the socket nothing would bring what an action changed.
document.addEventListener("htmx:afterRequest", (event) => {
  const { successful, xhr } = event.detail;
  if (successful && xhr.status === 204 && !connected) location.reload();
});
document.addEventListener("htmx:responseError", (event) => {
  if (event.detail.xhr.status === 422 && event.target.id !== "composer") {
    event.stopPropagation();
    showError(event.detail.xhr.responseText);
  }
}, true);

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || event.defaultPrevented || event.isComposing) return;
  if (document.querySelector("dialog:modal")) return;
  document.getElementById("stop")?.requestSubmit();
});

function tick() {
  for (const clock of document.querySelectorAll("[data-until]")) {
    const left = Math.max(0, Math.ceil((new Date(clock.dataset.until) - Date.now()) / 1000));
    clock.textContent = clock.dataset.words.replace("%s", left);
  }
  for (const note of document.querySelectorAll("[data-waiting-since]")) {
    const long = Date.now() - new Date(note.dataset.waitingSince) > WAIT_MS;
    note.hidden = !long;
    note.nextElementSibling.hidden = long;
  }
}
setInterval(tick, 500);
tick();
