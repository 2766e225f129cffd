"""The progress of a task in the health panel of a real browser: it follows the agent, in both schemes."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.accessibility import violations
from tests.e2e.steps import SCHEMES, ask, begin_dialog, play
from tests.e2e.test_tools import PATH, ROWS, calling, said
from tests.stack import Stack

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def scripted(stack: Stack) -> Stack:
    stack.shell(ROWS)
    return stack


def test_the_panel_follows_the_task_while_it_is_open(page: Page, scripted: Stack, faults: list[str]) -> None:
    begin_dialog(page, scripted)
    panel = page.locator("#health-panel")
    page.get_by_role("button", name="Context health: show every number").click()
    expect(panel).to_be_visible()
    expect(panel.get_by_text("Progress of the task")).to_have_count(0)
    play(scripted, calling(250, add_reminder={"content": PATH}, teleport={"where": PATH}), said(300, "One worked."))

    ask(page, f"Look at {PATH} and note it down.")

    task = panel.locator(".health-task")
    expect(task.get_by_text("Progress of the task")).to_be_visible()
    expect(task).to_contain_text("executing")
    expect(task.locator(".task-actions li")).to_have_text(["add_reminder"])
    expect(task.locator(".task-observations li").last).to_contain_text("teleport failed")
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        assert violations(page, "#health-drawer") == []
    page.set_viewport_size({"width": 390, "height": 844})
    task.scroll_into_view_if_needed()
    assert not panel.evaluate("element => element.scrollWidth > element.clientWidth")
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") == 0
