/* The socket's state, focus and announcements after its messages, clocks, and Escape, which stops the answer. */

import { announce, showError, watchSocket } from "./base.js";

const connection = document.getElementById("connection");
const words = document.getElementById("words").dataset;
const WAIT_MS = 3000;
// Twice as long as the server takes to notice a change of which Redis told it nothing.
const SILENT_MS = 10_000;
let connected = false;
let heard = 0;
let focused = [];
const isBusy = () => document.getElementById("turn").hasAttribute("data-busy");
let wasBusy = isBusy();
let newest = newestAnswer();

document.addEventListener("htmx:wsOpen", () => {
  connected = true;
  connection.textContent = "";
});
function lose() {
  connected = false;
  connection.textContent = connection.dataset.lost;
}
watchSocket(lose);
document.addEventListener("htmx:wsClose", (event) => {
  const { event: { code }, socketWrapper } = event.detail;
  lose();
  // Signed out, or the dialog is deleted: the reloaded page shows which.
  if ([4401, 4404].includes(code)) location.reload();
  // Too large for a socket message: load the page.
  else if (code === 4413) setTimeout(() => location.reload(), WAIT_MS);
  // htmx reconnects by itself after a failure, but not after a normal close.
  else if ([1000, 1001, 1005].includes(code)) setTimeout(socketWrapper.reconnect, 1000 + 2000 * Math.random());
});

// A replaced element keeps the focus. If it was in a menu that has closed, the menu gets it; if it is gone and the person
// uses the keyboard, the composer gets it.
function refocus(element) {
  element?.focus();
  if (document.activeElement === document.body) element?.closest("details")?.querySelector("summary").focus();
}
document.addEventListener("htmx:wsBeforeMessage", () => {
  heard += 1;
  const active = document.activeElement;
  // A message's menu has no entries before it is opened.
  const menu = active?.closest(".message-menu")?.querySelector("summary");
  const after = active?.matches(":focus-visible") && document.getElementById("composer-text");
  focused = [active?.id, menu?.id, after?.id].filter(Boolean);
});
document.addEventListener("htmx:wsAfterMessage", () => {
  if (focused.length && document.activeElement === document.body) {
    refocus(focused.map((id) => document.getElementById(id)).find(Boolean));
  }
  // A short turn can be over before the server shows it: then only its answer is seen.
  if (!isBusy() && (wasBusy || newestAnswer() > newest)) tellEnd();
  if (!isBusy()) newest = Math.max(newest, newestAnswer());
  wasBusy = isBusy();
  document.title = `${document.getElementById("dialog-title").textContent} · Dominds`;
  tick();
});

/** The number in the id of the last answer, 0 without one. A later answer has a larger number. */
function newestAnswer() {
  const answers = document.querySelectorAll("#rows .message-row.assistant[id^=message-]");
  return Number([...answers].at(-1)?.id.slice("message-".length) ?? 0);
}

/** Announce the end of a turn, once, however many tool rounds it had. Failures are alerts, announced anyway. */
function tellEnd() {
  const asked = document.querySelector(".question[data-status=pending]");
  if (asked) announce(`${asked.getAttribute("aria-label")}: ${asked.querySelector(".question-text").textContent}`);
  else if (!document.querySelector("#rows > .attempt-row:last-child")) announce(words.replied);
}

// Without the socket an action's change is shown by loading the page again. Screen readers hear what a button did.
document.addEventListener("htmx:afterRequest", (event) => {
  const { successful, xhr, requestConfig } = event.detail;
  if (!successful || xhr.status !== 204) return;
  const done = requestConfig.triggeringEvent?.submitter?.dataset.done;
  if (!connected) location.reload();
  else if (done) announce(done);
});
// After a sleep the socket may be dead although nothing closed it: then what was sent would never be shown.
document.addEventListener("htmx:beforeRequest", ({ target, detail: { xhr } }) => {
  const before = heard;
  const look = () => { if (heard === before && xhr.status === 204) location.reload(); };
  if (target.id === "composer") xhr.addEventListener("load", () => setTimeout(look, SILENT_MS));
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
