"""The pictures in docs/screenshots: `make screenshots`. A real stack, the scripted provider, a real Chromium."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser import executable
from tests.stack import Stack, running_stack

HERE = Path(__file__).parent / "screenshots"
PASSWORD = "pictures-pass-1"
CHROMIUM = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
DESKTOP, PHONE = (1280, 800), (390, 844)
WINDOW = 32_768

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
# Prompt tokens of each generation, rising through the levels of a 32,768-token window.
RISING = [1_840, 3_120, 5_460, 8_015, 11_240, 13_900, 17_300, 20_110, 22_480, 25_020, 27_650, 30_120]
LEVELS = {"healthy": 9_430, "caution": 26_310, "critical": 30_870, "unknown": None}


def script() -> dict[str, Any]:
    """A step for every level, chosen by a word in the question, and one for every generation of the chart."""
    steps = [_step(match=f"[{level}]", prompt_tokens=tokens) for level, tokens in LEVELS.items()]
    steps += [_step(match=f"Step {number}.", prompt_tokens=tokens) for number, tokens in enumerate(RISING, 1)]
    return {"steps": [*steps, _step(prompt_tokens=1_200)]}


def _step(*, prompt_tokens: int | None, match: str = "") -> dict[str, Any]:
    usage = prompt_tokens and {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": 214,
        "prompt_tokens_details": {"cached_tokens": prompt_tokens - 300},
    }
    return {"match": match, "text": ANSWER, "usage": usage}


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
    page.wait_for_selector("#composer-text")


def ask(page: Page, text: str) -> None:
    answers = page.locator(".message-row.assistant:not(.live)")
    count = answers.count()
    page.fill("#composer-text", text)
    page.press("#composer-text", "Enter")
    answers.nth(count).wait_for()
    page.wait_for_selector("#turn:not([data-busy])", state="attached")


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
    for level in LEVELS:
        new_dialog(page, stack)
        page.fill("#composer-text", "")
        ask(page, f"{QUESTION}\n[{level}]")
        page.evaluate("() => { document.getElementById('scroller').scrollTop = 0; }")
        page.locator(".message-row.user .message-text").evaluate(
            "(bubble) => { bubble.textContent = bubble.textContent.replace(/\\n\\[\\w+\\]$/, ''); }"
        )
        page.evaluate("() => document.activeElement.blur()")
        shoot(page, f"{name}-{level}")


def panel(page: Page, stack: Stack) -> None:
    """The panel, after a dialog that has risen through all levels."""
    new_dialog(page, stack)
    for number in range(1, len(RISING) + 1):
        ask(page, f"Step {number}. And the next query?")
    page.click(".meter-button")
    shoot(page, "panel")


def main() -> None:
    HERE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        data.mkdir()
        (data / "script.json").write_text(json.dumps(script()))
        with (
            running_stack(data, "--no-demo", DOMINDS_ADMIN_PASSWORD=PASSWORD) as stack,
            sync_playwright() as playwright,
        ):
            stack.shell(ROWS)
            browser = playwright.chromium.launch(executable_path=executable(), args=CHROMIUM)
            for theme in ("light", "dark"):
                levels(a_page(browser, stack, size=DESKTOP, theme=theme), stack, name=f"dialog-{theme}")
                levels(a_page(browser, stack, size=PHONE, theme=theme), stack, name=f"phone-{theme}")
            page = a_page(browser, stack, size=DESKTOP, theme="light")
            panel(page, stack)
            page.goto(stack.url)
            shoot(page, "list")


if __name__ == "__main__":
    main()
