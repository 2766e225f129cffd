"""What axe finds wrong with a part of the page, as readable lines."""

from __future__ import annotations

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page


def violations(page: Page, part: str) -> list[str]:
    """One line for each rule that the elements inside this selector break."""
    found = Axe().run(page, context={"include": [[part]]}).response["violations"]
    return [f"{rule['id']}: {[node['html'] for node in rule['nodes']]}" for rule in found]
