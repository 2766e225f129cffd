"""What a person sees of how a model is kept from overflowing: panel, menu, change of LLM, own settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.accessibility import violations
from tests.e2e.steps import NO_WIDER, sign_in
from tests.stack import Stack

pytestmark = pytest.mark.e2e

# A long dialog on a server whose refusal named its window and that was seen to cut; beside it a smaller LLM.
A_DIALOG = """
from datetime import timedelta
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone
from dialogs.models import LLM, Agent, Dialog, Generation, LlmBounds, Provider
from dialogs.pages.writes import create_dialog
from tests.dialogs.compacting_builders import a_history
from tests.builders import an_answer
from dialogs.turns.writes.messages import post_message
provider = Provider.objects.create(name="near", kind="openai", base_url="http://127.0.0.1:9/v1")
llm = LLM.objects.create(provider=provider, model_id="learned", context_length=32768, context_length_source="refusal")
LLM.objects.create(provider=provider, model_id="small", context_length=4096)
now = timezone.now()
LlmBounds.objects.create(llm=llm, accepted=18200, accepted_at=now, window=32768, refused_at=now - timedelta(days=2),
    words="This model's maximum context length is 32768 tokens. However, your messages resulted in 40112 tokens.",
    cut_sent=30500, cut_read=24100, cut_at=now)
agent = Agent.objects.create(name="Keeper", slug="keeper", llm=llm)
dialog = create_dialog(owner=User.objects.get(username="admin"), agent=agent)
dialog.title = "The harbour"
dialog.save()
a_history(dialog, pairs=24)
# At once: a worker that comes in between would ask for another answer.
with transaction.atomic():
    post_message(dialog=dialog, content="And then?")
    an_answer(dialog, "The tide table says", finish_reason="length",
        manifest={"asked": 4096, "options": {"max_output_tokens": 1200}, "cut": True})
print(dialog.pk)
"""


@pytest.fixture(scope="module")
def there(stack: Stack) -> str:
    return f"{stack.url}/dialogs/{stack.shell(A_DIALOG).strip().splitlines()[-1]}/"


def panel(page: Page, stack: Stack, there: str) -> str:
    page.goto(there)
    page.locator("#meter .meter-button").click()
    expect(page.locator("#budget .learned-window")).to_be_visible()
    page.locator("#budget .forget-window").scroll_into_view_if_needed()
    return "#health-drawer"


def menu(page: Page, stack: Stack, there: str) -> str:
    page.goto(there)
    page.locator(".dialog-menu > summary").click()
    expect(page.locator(".dialog-menu > .menu-panel")).to_be_visible()
    return ".dialog-menu"


def dialog_settings(page: Page, stack: Stack, there: str) -> str:
    page.goto(f"{there.split('#')[0].split('?')[0]}settings/")
    expect(page.locator("#compaction-off-means")).to_be_visible()
    return ".archive"


def smaller_llm(page: Page, stack: Stack, there: str) -> str:
    page.goto(there)
    page.locator(".llm-menu > summary").click()
    page.locator("#llm").select_option(index=1)
    page.locator(".menu-form", has=page.locator("#llm")).get_by_role("button").click()
    expect(page.locator("[name=how]")).to_have_count(2)
    return ".sheet"


def own_settings(page: Page, stack: Stack, there: str) -> str:
    page.goto(f"{stack.url}/settings/context/")
    page.locator(".settings-own > summary").first.click()
    expect(page.locator("textarea").first).to_be_visible()
    return "#context-settings"


LOOKS: tuple[tuple[int, Literal["light", "dark"], str], ...] = (
    (1280, "light", "en"),
    (390, "dark", "zh-hans"),
)


PARTS: tuple[Callable[[Page, Stack, str], str], ...] = (panel, menu, dialog_settings, smaller_llm, own_settings)


def test_everybody_reads_how_a_model_is_kept_from_overflowing_and_staff_make_what_was_learned_forgotten(
    page: Page, stack: Stack, there: str
) -> None:
    sign_in(page, stack)
    for width, theme, language in LOOKS:
        page.set_viewport_size({"width": width, "height": 844})
        page.emulate_media(color_scheme=theme)
        page.context.add_cookies([{"name": "django_language", "value": language, "url": stack.url}])
        for show in PARTS:
            part = show(page, stack, there)
            assert page.evaluate(NO_WIDER), (show.__name__, width)
            assert violations(page, part) == [], (show.__name__, width, theme, language)

    page.context.clear_cookies(name="django_language")
    forget_what_was_learned(page, stack, there)


def forget_what_was_learned(page: Page, stack: Stack, there: str) -> None:
    panel(page, stack, there)
    budget = page.locator("#budget")
    expect(budget).to_contain_text("24,100 of ≈30,500")
    expect(page.get_by_text("only a part of the prompt was read")).to_be_visible()

    budget.get_by_role("button", name="Forget").click()

    expect(budget.locator(".learned-window")).to_have_count(0)
    expect(budget).to_contain_text("its window is unknown")
