"""A compaction's phase end to end: from a worker's report to the frame at a socket, and to the card in a real page.

`python -m benchmarks.live_latency`. The worker stamps every report with the moment before it writes the row, so the
figures hold the database, Redis, the web process's reading and rendering, and the browser. The bound is 300 ms.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Semaphore, Thread

from playwright.sync_api import Page, sync_playwright
from websockets.sync.client import connect

from benchmarks.streaming import CHROMIUM, PASSWORD, Figures, figures, new_dialog, sign_in
from benchmarks.upstream import STAMP
from tests.browser import executable
from tests.stack import Stack, running_stack

REPORTS = 60
# More often than strategies begin and end.
PAUSE_SECONDS = 0.25
BUDGET_MS = 300
# From when a stamp left to when it was seen, in microseconds since the epoch.
Pair = tuple[int, int]

ROWS = """
from dialogs.models import LLM, Agent, Provider
provider = Provider.objects.create(name="scripted", kind="scripted", base_url="script.json")
Agent.objects.create(name="Helper", slug="helper", llm=LLM.objects.create(provider=provider, model_id="tiny"))
"""
# The area of a priority is shown in the card's badge, so a stamp in it can be seen in the page.
WORKER = """
import time
from dialogs.models import Dialog
from dialogs.compaction.writes.compaction import claim_run, finish_run, report
from tests.dialogs.compaction_runs import a_run
claim = claim_run(a_run(Dialog.objects.get(pk="{dialog}"), status="queued", tokens_now=None).pk)
for number in range({reports}):
    time.sleep({pause})
    stamp = f"t{{number}}={{time.time_ns() // 1000}}"
    report(claim, phase="hybrid", tokens_now=4000 + number, priority=2, priority_area=stamp)
time.sleep(1)
finish_run(claim, status="cancelled", facts={{}})
"""
OBSERVER = """() => {
  window.seen = {};
  const look = () => {
    const stamp = /t(\\d+)=(\\d+)/.exec(document.querySelector(".compaction-badge")?.textContent ?? "");
    const now = Math.round((performance.timeOrigin + performance.now()) * 1000);
    if (stamp && !(stamp[1] in window.seen)) window.seen[stamp[1]] = [Number(stamp[2]), now];
  };
  new MutationObserver(look).observe(document.querySelector(".dialog"), { childList: true, subtree: true });
}"""


@contextmanager
def sockets(count: int, stack: Stack, dialog: str, cookie: str) -> Iterator[list[Pair]]:
    """Tabs on the dialog, all of them connected, as plain sockets; what they saw of every stamp."""
    seen: list[Pair] = []
    done, connected = Event(), Semaphore(0)
    address = f"{stack.url.replace('http', 'ws')}/ws/dialogs/{dialog}/"

    def watch() -> None:
        headers = {"Cookie": cookie}
        with connect(address, origin=stack.url, additional_headers=headers, max_size=None, open_timeout=60) as socket:
            connected.release()
            while not done.is_set():
                try:
                    frame = str(socket.recv(timeout=0.5))
                except TimeoutError:
                    continue
                now = time.time_ns() // 1000
                # Once for each frame, since the stamp is also in frames of other changes.
                seen.extend((int(left), now) for left in {left for _number, left in STAMP.findall(frame)})

    threads = [Thread(target=watch, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    for _ in threads:
        assert connected.acquire(timeout=60), "a socket could not be opened"
    try:
        yield seen
    finally:
        done.set()
        for thread in threads:
            thread.join(2)


def report_phases(stack: Stack, dialog: str) -> None:
    stack.run_manage(
        "shell", "--verbosity", "0", "--command", WORKER.format(dialog=dialog, reports=REPORTS, pause=PAUSE_SECONDS)
    )


def watch(page: Page, stack: Stack, *, tabs: int, with_page: bool) -> tuple[list[Pair], list[Pair]]:
    """What so many tabs saw: sockets, and among them one real page if wanted."""
    dialog = new_dialog(stack)
    cookie = "; ".join(f"{cookie['name']}={cookie['value']}" for cookie in page.context.cookies())
    if with_page:
        page.goto(f"{stack.url}/dialogs/{dialog}/")
        page.evaluate(OBSERVER)
    with sockets(tabs - with_page, stack, dialog, cookie) as seen:
        time.sleep(2)
        report_phases(stack, dialog)
    stamps = page.evaluate("window.seen") if with_page else {}
    return seen, [(left, at) for left, at in stamps.values()]


def measure(stack: Stack) -> dict[str, Figures]:
    with sync_playwright() as playwright:
        page = playwright.chromium.launch(executable_path=executable(), args=CHROMIUM).new_page()
        sign_in(page, stack)
        frames, _ = watch(page, stack, tabs=1, with_page=False)
        _, cards = watch(page, stack, tabs=1, with_page=True)
        many_frames, many_cards = watch(page, stack, tabs=50, with_page=True)
    return {
        "frame, 1 watcher": figures(frames),
        "card in the page, 1 watcher": figures(cards),
        "frame, 50 watchers": figures(many_frames),
        "card in the page, 50 watchers": figures(many_cards),
    }


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        data.mkdir()
        (data / "script.json").write_text(json.dumps({"steps": [{"text": "fine"}]}))
        with running_stack(data, "--no-demo", DOMINDS_ADMIN_PASSWORD=PASSWORD) as stack:
            stack.shell(ROWS)
            found = measure(stack)
    print(f"{REPORTS} reports, one every {PAUSE_SECONDS * 1000:.0f} ms; delay from the report, {BUDGET_MS} ms allowed")
    for name, row in found.items():
        verdict = "within" if row.p95 < BUDGET_MS else "OVER"
        print(f"  {name:30} p50 {row.p50:6.1f} ms   p95 {row.p95:6.1f} ms   {verdict}")


if __name__ == "__main__":
    main()
