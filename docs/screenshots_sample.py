"""The pictures of the sample's tour in docs/screenshots, with the real demo model: light, dark, on a phone, in Chinese.

`make screenshots` takes those that the docs show. `.venv/bin/python -m docs.screenshots_sample FOLDER` takes one of
every stop instead, to look at. What the tiny model says differs from machine to machine.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from docs.screenshots import CHROMIUM, DESKTOP, HERE, PASSWORD, PHONE, a_page
from tests.browser import executable, install_chinese_font
from tests.e2e.test_sample import STOPS
from tests.stack import Stack, running_stack

EMPTY = "from dialogs.models import Dialog; Dialog.objects.all().delete()"
PATIENCE_MS = 180_000


@dataclass(frozen=True)
class Look:
    """`kept` is the stop whose picture the docs show."""

    name: str
    size: tuple[int, int]
    theme: str
    kept: str
    language: str = ""


LOOKS = (
    Look("en", DESKTOP, "light", "compaction-busy"),
    Look("zh", DESKTOP, "light", "compaction-busy", "简体中文"),
    Look("dark", DESKTOP, "dark", "archive"),
    Look("phone", PHONE, "light", "lost"),
)


def take(page: Page, look: Look, stop: str, folder: Path | None) -> None:
    """Where a folder is named, all of them, into it."""
    if folder or stop == look.kept:
        page.wait_for_timeout(400)
        page.screenshot(path=folder / f"{look.name}-{stop}.png" if folder else HERE / f"sample-{look.name}.png")


def tour(browser: Browser, stack: Stack, look: Look, folder: Path | None) -> None:
    stack.shell(EMPTY)
    page = a_page(browser, stack, size=look.size, theme=look.theme)
    if look.language:
        page.click('summary[aria-label="Language"]')
        page.click(f"text={look.language}")
    page.locator("form[action='/dialogs/sample/'] button").click()
    for stop in STOPS:
        page.wait_for_selector(f'#tour[data-stop="{stop}"]')
        page.wait_for_load_state()
        if stop == "compaction":
            page.wait_for_selector("#compaction-card:not([hidden])", timeout=PATIENCE_MS)
            take(page, look, "compaction-busy", folder)
        page.wait_for_selector("#tour-next:not([aria-disabled])", timeout=PATIENCE_MS)
        take(page, look, stop, folder)
        page.click("#tour-next")
    page.context.close()


def main() -> None:
    install_chinese_font()
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    with tempfile.TemporaryDirectory() as place:
        data = Path(place) / "data"
        with running_stack(data, DOMINDS_ADMIN_PASSWORD=PASSWORD) as stack, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=executable(), args=CHROMIUM)
            for look in LOOKS:
                tour(browser, stack, look, folder)


if __name__ == "__main__":
    main()
