"""Tokens end to end: from the provider's chunk to the page, beside a client that reads the provider directly.

The upstream stamps every chunk with the moment at which it left. A direct reader and a real Chromium note
when they see each stamp. Everything between is ours: worker, Redis, web process, socket, rendering, DOM.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from threading import Event, Thread

import httpx
from playwright.sync_api import Page, sync_playwright
from websockets.sync.client import connect

from benchmarks.upstream import CHUNKS, STAMP
from tests.browser import executable
from tests.environment import free_port
from tests.stack import Stack, running_stack

PASSWORD = "bench-pass-1"
CHROMIUM = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
# Notes, for every stamp, when it first stood in the page. Microseconds since the epoch.
OBSERVER = """() => {
  window.seen = {};
  const look = () => {
    const live = document.getElementById("rows");
    const now = Math.round((performance.timeOrigin + performance.now()) * 1000);
    for (const stamp of live.textContent.matchAll(/t(\\d+)=(\\d+)/g))
      if (!(stamp[1] in window.seen)) window.seen[stamp[1]] = [Number(stamp[2]), now];
  };
  // Not #rows: the first message replaces it.
  new MutationObserver(look).observe(document.getElementById("scroller"), {
    childList: true, subtree: true, characterData: true,
  });
}"""


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Milliseconds from chunk to reader, and chunks a second."""

    p50: float
    p95: float
    rate: float

    def over(self, baseline: Figures) -> str:
        p50, p95, rate = self.p50 / baseline.p50, self.p95 / baseline.p95, self.rate / baseline.rate
        return f"p50 x{p50:.1f}  p95 x{p95:.1f}  rate x{rate:.2f}"

    def __str__(self) -> str:
        return f"p50 {self.p50:7.1f} ms   p95 {self.p95:7.1f} ms   {self.rate:6.1f} chunks/s"


def figures(pairs: list[tuple[int, int]]) -> Figures:
    """From (left, seen) in microseconds, one pair a chunk."""
    delays = [(seen - left) / 1000 for left, seen in pairs]
    seconds = (max(seen for _, seen in pairs) - min(left for left, _ in pairs)) / 1e6
    return Figures(p50=median(delays), p95=quantiles(delays, n=20)[-1], rate=len(pairs) / seconds)


@contextmanager
def upstream() -> Iterator[str]:
    port = free_port()
    process = subprocess.Popen([sys.executable, "-m", "benchmarks.upstream", str(port)])
    try:
        time.sleep(0.5)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait()


def read_directly(url: str) -> Figures:
    """The baseline: a client that reads the provider's stream directly."""
    pairs = []
    with httpx.stream("POST", f"{url}/chat/completions", json={"stream": True}, timeout=60) as response:
        for line in response.iter_lines():
            for _number, left in STAMP.findall(line):
                pairs.append((int(left), time.time_ns() // 1000))
    return figures(pairs)


def sign_in(page: Page, stack: Stack) -> None:
    page.goto(f"{stack.url}/login/")
    page.fill("input[name=username]", "admin")
    page.fill("input[name=password]", PASSWORD)
    page.click("main button[type=submit]")
    page.wait_for_url(f"{stack.url}/**")


def new_dialog(stack: Stack) -> str:
    code = """
from django.contrib.auth.models import User
from dialogs.models import Agent
from dialogs.pages.writes import create_dialog
print(create_dialog(owner=User.objects.get(username="admin"), agent=Agent.objects.get(is_demo=False)).pk)
"""
    return stack.shell(code).split()[-1]


@contextmanager
def watchers(count: int, stack: Stack, dialog: str, cookie: str) -> Iterator[None]:
    """Other tabs on the same dialog, as plain sockets that read everything."""
    done = Event()
    address = f"{stack.url.replace('http', 'ws')}/ws/dialogs/{dialog}/"

    def watch() -> None:
        with connect(address, origin=stack.url, additional_headers={"Cookie": cookie}, max_size=None) as socket:
            while not done.is_set():
                try:
                    socket.recv(timeout=0.5)
                except TimeoutError:
                    continue

    threads = [Thread(target=watch, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        done.set()
        for thread in threads:
            thread.join(2)


def watch_a_page(page: Page, stack: Stack, *, others: int) -> Figures:
    dialog = new_dialog(stack)
    page.goto(f"{stack.url}/dialogs/{dialog}/")
    page.evaluate(OBSERVER)
    cookie = "; ".join(f"{cookie['name']}={cookie['value']}" for cookie in page.context.cookies())
    with watchers(others, stack, dialog, cookie):
        time.sleep(1)
        page.fill("#composer-text", "Go")
        page.press("#composer-text", "Enter")
        page.wait_for_function(f"() => Object.keys(window.seen).length >= {CHUNKS}", timeout=120_000)
    seen = page.evaluate("window.seen")
    return figures([(left, at) for left, at in seen.values()])


def measure(stack: Stack, url: str) -> dict[str, Figures]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable(), args=CHROMIUM)
        page = browser.new_page()
        sign_in(page, stack)
        return {
            "provider read directly": read_directly(url),
            "page, 1 watcher": watch_a_page(page, stack, others=0),
            "page, 50 watchers": watch_a_page(page, stack, others=49),
        }


def main() -> None:
    with ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory()))
        url = opened.enter_context(upstream())
        settings = {"DOMINDS_ADMIN_PASSWORD": PASSWORD}
        stack = opened.enter_context(running_stack(folder / "data", "--no-demo", **settings))
        stack.run_manage("provider", "add", "openai", url, "--name", "stamped", "--model", "stamped")
        found = measure(stack, url)
    baseline = found["provider read directly"]
    print(f"{CHUNKS} chunks, one every 20 ms; delay from the provider's chunk to the reader")
    for name, row in found.items():
        print(f"  {name:24} {row}   {row.over(baseline)}")
    print(json.dumps({name: vars(row) for name, row in found.items()}))


if __name__ == "__main__":
    main()
