"""The pictures of the demo in docs/screenshots: twelve messages to the real demo model, compacted in place.

`make screenshots` takes them last. What the tiny model says differs from machine to machine.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from docs.screenshots import CHROMIUM, DESKTOP, PASSWORD, PHONE, new_dialog, shoot, sign_in
from tests.browser import executable
from tests.e2e import steps
from tests.e2e.test_demo_dialog import SAID
from tests.stack import Stack, running_stack

PICTURES = {"light": (DESKTOP, "light"), "dark": (DESKTOP, "dark"), "phone": (PHONE, "light")}


def hold_the_talk(page: Page, stack: Stack) -> None:
    sign_in(page, stack)
    new_dialog(page, stack)
    for text in SAID:
        steps.ask(page, text)


def show_the_divider(page: Page) -> None:
    page.evaluate("() => document.activeElement.blur()")
    page.locator(".divider").last.evaluate("divider => divider.scrollIntoView({block: 'center'})")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        data.mkdir()
        with running_stack(data, DOMINDS_ADMIN_PASSWORD=PASSWORD) as stack, sync_playwright() as playwright:
            page = playwright.chromium.launch(executable_path=executable(), args=CHROMIUM).new_page()
            hold_the_talk(page, stack)
            for name, ((width, height), theme) in PICTURES.items():
                page.set_viewport_size({"width": width, "height": height})
                page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
                show_the_divider(page)
                shoot(page, f"demo-{name}")


if __name__ == "__main__":
    main()
