"""What axe finds wrong with a part of the page, as readable lines; and whether everybody can read it."""

from __future__ import annotations

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from tests.e2e.steps import NO_WIDER, SCHEMES


def violations(page: Page, part: str) -> list[str]:
    """One line for each rule that the elements inside this selector break."""
    found = Axe().run(page, context={"include": [[part]]}).response["violations"]
    return [f"{rule['id']}: {[node['html'] for node in rule['nodes']]}" for rule in found]


def assert_readable(page: Page, part: str = "main") -> None:
    """The page is no wider than the screen, and axe finds nothing wrong, in light and in dark."""
    assert page.evaluate(NO_WIDER)
    for scheme in SCHEMES:
        # Colours that are still on their way from one scheme to the other are of neither.
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        assert violations(page, part) == []
