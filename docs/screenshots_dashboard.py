"""The pictures of the first page in docs/screenshots: empty, a dozen dialogs (also dark, on a phone, in Chinese), and a
thousand. `make screenshots` takes them with the others."""

from __future__ import annotations

import tempfile
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from docs.screenshots import CHROMIUM, DESKTOP, PASSWORD, PHONE, ROWS, a_page, shoot
from tests.browser import executable, install_chinese_font
from tests.stack import Stack, running_stack

# Title, level, prompt tokens, hours since; in one transaction, so that no worker answers what is only drawn.
DOZEN = """
from datetime import timedelta
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone
from dialogs.models import Agent, ApiKey, AutonomousRun, ClientConversation, Dialog, Question, ToolCall
from dialogs.pages.writes import create_dialog
from dialogs.turns.writes.messages import post_message
from health.models import CompactionRun, HealthReading
from tests.builders import a_generation, an_answer
me, agent, made = User.objects.get(username="admin"), Agent.objects.get(), {}
LAID_OUT = [
    ("Speed up the orders page", "critical", 30900, 0), ("Trip to Lisbon in April", "caution", 26300, 3),
    ("Refactor the importer", "healthy", 9430, 6), ("Weekly report", "healthy", 4000, 9),
    ("Reading list", "healthy", 1200, 12), ("Garden plan for the north side of the house", "caution", 25400, 15),
    ("Quarterly figures", "healthy", 8000, 18), ("Night run: migrate the tests", "healthy", 14000, 21),
    ("Chat from Open WebUI", "healthy", 5200, 24), ("Error in the export", "critical", 31000, 27),
    ("学习日语的计划", "healthy", 3000, 30), ("A question about invoices", "healthy", 2100, 33),
]
with transaction.atomic():
    for title, level, tokens, hours in LAID_OUT:
        dialog = made[title] = create_dialog(owner=me, agent=agent)
        post_message(dialog=dialog, content="Which index does this query need?")
        answer = an_answer(dialog, "One over both columns serves it. Next I explain the plan.", prompt_tokens=tokens)
        HealthReading.objects.create(generation=answer.generation, level=level, prompt_tokens=tokens,
            context_window=32768, hard_util=tokens / 32768, optimal_max_tokens=24576, critical_max_tokens=29491)
        Dialog.objects.filter(pk=dialog.pk).update(title=title, active_at=timezone.now() - timedelta(hours=hours))
        dialog.refresh_from_db()
    freed = made["Refactor the importer"]
    CompactionRun.objects.create(dialog=freed, course=freed.current_leaf.course, leaf=freed.current_leaf, turn=1,
        through_seq=1, trigger="pre_request", status="applied", limit_tokens=30000, estimated_before=26100,
        estimated_after=9200, finished_at=timezone.now() - timedelta(days=1))
    asking = made["Weekly report"]
    call = ToolCall.objects.create(message=asking.current_leaf, position=0, call_id="c1", name="ask_human",
        arguments="{}", status="waiting")
    Question.objects.create(dialog=asking, tool_call=call, text="Shall it cover October too, or only November?")
    running = made["Night run: migrate the tests"]
    AutonomousRun.objects.create(dialog=running, goal="Migrate", max_generations=200, generations=41, first_course=1)
    Dialog.objects.filter(pk=running.pk).update(paused_by="loop")
    theirs = made["Chat from Open WebUI"]
    key = ApiKey.objects.create(owner=me, name="Open WebUI", prefix="dk", sha256="x")
    ClientConversation.objects.create(dialog=theirs, api_key=key, model="qwen3-14b")
    Dialog.objects.filter(pk=theirs.pk).update(is_client_driven=True)
    a_generation(made["Error in the export"], status="failed", error_code="provider_unreachable")
"""
THOUSAND = """
with transaction.atomic():
    Dialog.objects.bulk_create(Dialog(owner=me, agent=agent, llm=agent.llm, title=f"Dialog {number}",
        active_at=timezone.now() - timedelta(hours=40 + number)) for number in range(1000))
"""


def show(page: Page, stack: Stack, name: str) -> None:
    page.goto(stack.url)
    shoot(page, f"dashboard-{name}")


def in_chinese(browser: Browser, stack: Stack) -> Page:
    page = a_page(browser, stack, size=DESKTOP, theme="light")
    page.click('summary[aria-label="Language"]')
    page.click("text=简体中文")
    page.wait_for_selector("html[lang=zh-hans]")
    return page


def main() -> None:
    install_chinese_font()
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        with (
            running_stack(data, "--no-demo", DOMINDS_ADMIN_PASSWORD=PASSWORD) as stack,
            sync_playwright() as playwright,
        ):
            browser = playwright.chromium.launch(executable_path=executable(), args=CHROMIUM)
            stack.shell(ROWS)
            page = a_page(browser, stack, size=DESKTOP, theme="light")
            show(page, stack, "empty")
            stack.shell(DOZEN)
            show(page, stack, "en")
            show(a_page(browser, stack, size=DESKTOP, theme="dark"), stack, "dark")
            show(a_page(browser, stack, size=PHONE, theme="light"), stack, "phone")
            show(in_chinese(browser, stack), stack, "zh")
            stack.shell(DOZEN.split("LAID_OUT")[0] + THOUSAND)
            show(page, stack, "thousand")


if __name__ == "__main__":
    main()
