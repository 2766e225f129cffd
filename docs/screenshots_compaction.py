"""The pictures of live compaction in docs/screenshots: every state of the card, the divider, the archive, the settings.

`make screenshots` takes them after the others, in English and in Chinese. The states are rows written into a real
stack, as nobody can hold a run still in its middle.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from docs.screenshots import CHROMIUM, DESKTOP, HERE, PASSWORD, a_page, shoot
from tests.browser import executable, install_chinese_font
from tests.stack import Stack, running_stack

LANGUAGES = {"en": "en", "zh": "zh-hans"}
STATES = {
    "detection": {"status": "running", "phase": "detection"},
    "summarize-old": {"status": "running", "phase": "summarize_old", "tokens_now": 4800},
    "prioritize-recent": {"status": "running", "phase": "prioritize_recent", "tokens_now": 4400, "priority": 1},
    "content-chunking": {"status": "running", "phase": "content_type_chunking", "tokens_now": 4100},
    "discard-low-rel": {"status": "running", "phase": "discard_low_rel", "tokens_now": 3900, "priority": 2},
    "hybrid": {"status": "running", "phase": "hybrid", "tokens_now": 3700},
    "recovery": {"status": "running", "phase": "recovery", "tokens_now": 5200},
    "success": {"status": "applied", "phase": "success", "tokens_now": 3420},
    "handover": {"status": "applied", "phase": "handover", "recovered": "fresh_start", "tokens_now": 1200},
    "skipped": {"status": "skipped", "phase": "skipped", "reason": "Nothing to gain: it would free 3%."},
    "failed": {
        "status": "failed",
        "phase": "failed",
        "reason": "What must stay needs 6,100 tokens.",
    },
    "cancelled": {"status": "cancelled", "phase": "cancelled"},
}
ROWS = """
from time import sleep
from django.contrib.auth.models import User
from django.utils import timezone
from dialogs.models import LLM, Agent, CompactionDisplay, Course, Dialog, MessageMark, Provider
from dialogs.llms.guard import by_limit
from dialogs.compaction.work import perform
from dialogs.compaction.writes.compaction import queue_run
from tests.dialogs.compacting_builders import a_history
from tests.dialogs.compaction_runs import a_run
admin = User.objects.get(username="admin")
CompactionDisplay.objects.create(user=admin, auto_hide_seconds=10, detail="detailed")
provider = Provider.objects.create(name="local", kind="scripted", base_url="script.json")
llm = LLM.objects.create(provider=provider, model_id="qwen3-14b", context_length=32768)
agent = Agent.objects.create(name="Engineer", slug="engineer", llm=llm, context_budget=True, context_limit=5000)
def a_dialog(title):
    dialog = Dialog.objects.create(owner=admin, agent=agent, llm=llm, title=title, active_at=timezone.now())
    Course.objects.create(dialog=dialog, number=1)
    a_history(dialog, pairs=22)
    return dialog
for name, fields in {states!r}.items():
    run = a_run(a_dialog(name), **({{"limit_tokens": 5000, "estimated_before": 5300}} | fields))
real = a_dialog("Compacted")
MessageMark.objects.create(message=real.messages.first(), priority=1, area="To Do List")
run = queue_run(real, guard=by_limit(real), trigger="pre_request")
perform(run.pk, embedder="static")
# The stack's own worker may have been quicker.
for _look in range(600):
    run.refresh_from_db()
    if not run.is_open:
        break
    sleep(0.1)
assert run.status == "applied", run.status
"""


def speak(page: Page, stack: Stack, language: str) -> None:
    page.goto(stack.url)
    token = page.evaluate("() => document.querySelector('[name=csrfmiddlewaretoken]').value")
    form = {"language": LANGUAGES[language], "csrfmiddlewaretoken": token}
    page.request.post(f"{stack.url}/preferences/language/", form=form, headers={"Referer": stack.url})


def open_dialog(page: Page, stack: Stack, title: str) -> None:
    page.goto(stack.url)
    page.get_by_role("link", name=title).first.click()
    page.wait_for_selector("#composer-text")


def cards(page: Page, stack: Stack, language: str) -> None:
    for state in STATES:
        open_dialog(page, stack, state)
        card = page.locator("#compaction-card")
        card.wait_for(state="visible")
        page.wait_for_timeout(300)
        # The bar may be moving: a clip waits for nothing.
        page.screenshot(path=HERE / f"compaction-{language}-{state}.png", clip=card.bounding_box())


def pages(page: Page, stack: Stack, language: str) -> None:
    open_dialog(page, stack, "Compacted")
    divider = page.locator(".compaction-row, [id^=divider-]").first
    divider.scroll_into_view_if_needed()
    shoot(page, f"divider-{language}")
    archive = page.url.rstrip("/") + "/archive-of-context/"
    page.goto(archive)
    shoot(page, f"archive-{language}")
    page.goto(f"{stack.url}/settings/context/")
    shoot(page, f"settings-{language}")


def take(browser: Browser, stack: Stack) -> None:
    for language in LANGUAGES:
        page = a_page(browser, stack, size=DESKTOP, theme="light")
        page.emulate_media(reduced_motion="reduce")
        speak(page, stack, language)
        cards(page, stack, language)
        pages(page, stack, language)


def main() -> None:
    install_chinese_font()
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        data.mkdir()
        with (
            running_stack(data, "--no-demo", DOMINDS_ADMIN_PASSWORD=PASSWORD) as stack,
            sync_playwright() as playwright,
        ):
            stack.shell(ROWS.format(states=STATES))
            take(playwright.chromium.launch(executable_path=executable(), args=CHROMIUM), stack)


if __name__ == "__main__":
    main()
