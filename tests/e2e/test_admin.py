"""The stock admin under the strict content security policy, in a real browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import ConsoleMessage, Page

from tests.stack import Stack

pytestmark = pytest.mark.e2e

PAGES = (
    "/admin/",
    "/admin/dialogs/provider/",
    "/admin/dialogs/provider/add/",
    "/admin/dialogs/llm/",
    "/admin/dialogs/llm/add/",
    "/admin/dialogs/agent/",
    "/admin/dialogs/agent/add/",
    "/admin/dialogs/generation/",
    "/admin/health/healthreading/",
    "/admin/health/compactionrun/",
    "/admin/health/contextevent/",
    "/admin/health/contextsettings/",
    "/admin/health/llmcalibration/",
    "/admin/health/settingschange/",
    "/admin/auth/user/",
    "/admin/auth/user/1/change/",
)


@pytest.fixture
def complaints(page: Page) -> list[str]:
    """What the browser refused to load or to run."""
    found: list[str] = []

    def listen(message: ConsoleMessage) -> None:
        if message.type == "error" and "favicon" not in str(message.location):
            found.append(f"{page.url}: {message.text}")

    page.on("console", listen)
    page.on("pageerror", lambda error: found.append(f"{page.url}: {error}"))
    return found


def test_no_admin_page_breaks_the_policy_and_a_slug_is_written_while_the_name_is_typed(
    page: Page, stack: Stack, complaints: list[str]
) -> None:
    link = stack.run_manage("signin_link", "--address", stack.url).stdout.strip()
    page.goto(link)
    page.get_by_role("button", name="Sign in").click()

    for path in PAGES:
        response = page.goto(stack.url + path)
        assert response is not None
        assert response.status == 200, path

    # The admin's own scripts run under the policy.
    page.goto(f"{stack.url}/admin/dialogs/agent/add/")
    page.locator("#id_name").press_sequentially("My Helper")
    assert page.locator("#id_slug").input_value() == "my-helper"
    assert complaints == []
