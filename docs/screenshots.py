"""The pictures in docs/screenshots: `make screenshots`. A real stack, the scripted provider, a real Chromium."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser import executable
from tests.e2e.steps import play
from tests.stack import Stack, running_stack

HERE = Path(__file__).parent / "screenshots"
PASSWORD = "pictures-pass-1"
CHROMIUM = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
DESKTOP, PHONE = (1280, 800), (390, 844)
# The whole panel, down to its chart.
TALL = (1280, 1180)

QUESTION = "Which index does this query need? It takes four seconds:\n\nSELECT * FROM orders WHERE customer_id = 42 ORDER BY placed_at DESC LIMIT 20;"  # noqa: E501
ANSWER = """The query filters by `customer_id` and sorts by `placed_at`, so one index over **both columns, in that order**, serves it:

```sql
CREATE INDEX CONCURRENTLY orders_by_customer
    ON orders (customer_id, placed_at DESC);
```

| plan | rows read | time |
|:---|---:|---:|
| now: sequential scan, then sort | 2,140,000 | 4.1 s |
| with the index | 20 | 0.3 ms |

`CONCURRENTLY` keeps the table writable while the index is built."""  # noqa: E501
PONDERING = "I write down what matters first."
NOTED = """{"content": "First step: create orders_by_customer CONCURRENTLY on staging, then explain the query again.\\nRun: make explain QUERY=q42\\nThe customer's limit: no lock longer than 2 s."}"""  # noqa: E501
TASKDOC = """{"content": "Make the orders page answer within **200 ms**. Measure before and after; nothing may lock the table."}"""  # noqa: E501
AGAIN = "The reminder says where to go on: the index is built on **staging** first. I explain the query again as soon as it stands; no lock may last longer than two seconds."  # noqa: E501


def said(prompt_tokens: int | None, text: str = ANSWER) -> dict[str, Any]:
    """An answer; None for one without usage."""
    details = prompt_tokens and {"cached_tokens": prompt_tokens - 300}
    usage = prompt_tokens and {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": 214,
        "prompt_tokens_details": details,
    }
    # The page shows each message before the next comes.
    return {"text": text, "usage": usage, "delay": 0.4}


def calling(prompt_tokens: int, name: str, arguments: str = "{}") -> dict[str, Any]:
    call = {"id": name, "name": name, "arguments": arguments}
    return {**said(prompt_tokens, ""), "tool_calls": [call], "finish": "tool_calls"}


# What Dominds asks for next is not answered while the picture is taken.
SILENCE = {"text": PONDERING, "hang": True}
LEVELS = {
    "healthy": [said(9_430)],
    "caution": [said(26_310), calling(26_540, "add_reminder", NOTED), said(26_810, "Reminder 1 holds it.")],
    "critical": [said(30_870), SILENCE],
    "unknown": [said(None)],
}
# Prompt tokens of each generation, rising through the levels of a 32,768-token window.
RISING = [1_840, 3_120, 5_460, 8_015, 11_240, 13_900, 17_300, 20_110, 22_480, 25_020, 27_650, 30_120]
# The agent writes down what it needs, clears its mind, and goes on in a course that is nearly empty.
CLEARING = [
    calling(22_140, "update_taskdoc", TASKDOC),
    said(22_350),
    said(25_370),
    calling(25_910, "add_reminder", NOTED),
    calling(26_230, "clear_mind"),
    calling(1_460, "read_course", '{"course": 1}'),
    said(2_310, AGAIN),
]


ROWS = """
from django.contrib.auth.models import User
from dialogs.models import LLM, Agent, Provider
provider = Provider.objects.create(name="local", kind="scripted", base_url="script.json")
llm = LLM.objects.create(provider=provider, model_id="qwen3-14b", context_length=32768,
    context_length_source="server", optimal_max_tokens=24576)
Agent.objects.create(name="Database", slug="database", llm=llm, instructions="You know databases.",
    description="Knows PostgreSQL, and reads query plans for you.")
"""


def sign_in(page: Page, stack: Stack) -> None:
    page.goto(f"{stack.url}/login/")
    page.fill("input[name=username]", "admin")
    page.fill("input[name=password]", PASSWORD)
    page.press("input[name=password]", "Enter")
    page.wait_for_selector("text=New dialog")


def new_dialog(page: Page, stack: Stack) -> None:
    page.goto(stack.url)
    page.click("text=New dialog >> nth=0")
    # Enter means "send" only once the page's scripts have run.
    page.wait_for_load_state()
    page.wait_for_selector("#composer-text")


def ask(page: Page, text: str) -> None:
    """Send, and wait until the agent rests, or ponders over what Dominds asks."""
    page.fill("#composer-text", text)
    page.press("#composer-text", "Enter")
    page.locator(".message-row.user", has_text=text).first.wait_for(state="attached")
    page.wait_for_selector(f"#turn:not([data-busy]), .live:has-text('{PONDERING}')", state="attached")


def shoot(page: Page, name: str) -> None:
    page.wait_for_timeout(400)
    page.screenshot(path=HERE / f"{name}.png")


def a_page(browser: Browser, stack: Stack, *, size: tuple[int, int], theme: str) -> Page:
    width, height = size
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme)  # type: ignore[arg-type]
    page = context.new_page()
    sign_in(page, stack)
    return page


def levels(page: Page, stack: Stack, *, name: str) -> None:
    """The dialog page at every level."""
    for level, steps in LEVELS.items():
        play(stack, *steps)
        new_dialog(page, stack)
        ask(page, QUESTION)
        # What Dominds asked stands at the end.
        if not page.locator(".inserted").count():
            page.evaluate("() => { document.getElementById('scroller').scrollTop = 0; }")
        page.evaluate("() => document.activeElement.blur()")
        shoot(page, f"{name}-{level}")


def panel(page: Page, stack: Stack) -> None:
    """The panel, after a dialog that has risen through all levels."""
    play(stack, *[said(tokens) for tokens in RISING], SILENCE)
    new_dialog(page, stack)
    # One generation answers what Dominds asks when caution begins.
    for number in range(1, len(RISING)):
        ask(page, f"Step {number}. And the next query?")
    page.click(".meter-button")
    shoot(page, "panel")


def courses(page: Page, stack: Stack) -> None:
    """A new course, with what came along in the notebook."""
    play(stack, *CLEARING)
    new_dialog(page, stack)
    ask(page, QUESTION)
    ask(page, "And the other queries of that page?")
    page.click(".notebook-open button")
    page.evaluate("() => document.activeElement.blur()")
    shoot(page, "courses")


def main() -> None:
    HERE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        data.mkdir()
        with (
            running_stack(data, "--no-demo", DOMINDS_ADMIN_PASSWORD=PASSWORD) as stack,
            sync_playwright() as playwright,
        ):
            stack.shell(ROWS)
            browser = playwright.chromium.launch(executable_path=executable(), args=CHROMIUM)
            # First, while there are no other dialogs beside it.
            courses(a_page(browser, stack, size=DESKTOP, theme="light"), stack)
            for theme in ("light", "dark"):
                levels(a_page(browser, stack, size=DESKTOP, theme=theme), stack, name=f"dialog-{theme}")
                levels(a_page(browser, stack, size=PHONE, theme=theme), stack, name=f"phone-{theme}")
            panel(a_page(browser, stack, size=TALL, theme="light"), stack)
            page = a_page(browser, stack, size=DESKTOP, theme="light")
            page.goto(stack.url)
            shoot(page, "list")


if __name__ == "__main__":
    main()
