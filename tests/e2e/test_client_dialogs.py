"""A conversation that a client drives through `/v1`, live in a real Chromium: watched, stopped, never written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.client_dialogs import picture
from tests.e2e.accessibility import violations
from tests.e2e.steps import SCHEMES, answers, play, sign_in
from tests.stack import Stack

pytestmark = pytest.mark.e2e

ROWS = """
from dialogs.models import LLM, Agent, Provider
provider = Provider.objects.create(name="scripted", kind="scripted", base_url="script.json")
llm = LLM.objects.create(provider=provider, model_id="tiny", context_length=1000, context_length_source="admin",
    optimal_max_tokens=500)
Agent.objects.create(name="Helper", slug="helper", llm=llm)
"""
A_KEY = """
from django.contrib.auth.models import User
from dialogs.api.writes.api_keys import create_key
print(create_key(owner=User.objects.get(username="admin"), name="laptop")[1])
"""
MODEL = "scripted/tiny"
HELLO = [{"role": "user", "content": "Hello"}]
FIRST = {"text": "Hi there.", "usage": {"prompt_tokens": 120, "completion_tokens": 5}}
AGAIN = [*HELLO, {"role": "assistant", "content": "Hi there."}, {"role": "user", "content": "Count."}]
SCROLLS_SIDEWAYS = """() => [document.documentElement, document.getElementById("scroller")]
  .some((element) => element.scrollWidth > element.clientWidth)"""


@pytest.fixture(scope="module")
def served(stack: Stack) -> Stack:
    stack.shell(ROWS)
    return stack


class Client:
    """What a program does that has a key: it asks, and reads the answer's stream in a thread of its own."""

    def __init__(self, stack: Stack, threads: ThreadPoolExecutor) -> None:
        self.url, self.threads = f"{stack.url}/v1/chat/completions", threads
        self.headers = {"Authorization": f"Bearer {stack.shell(A_KEY)}", "X-Dominds-Chat": "Counting"}

    def ask(self, messages: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        body = {"model": MODEL, "messages": messages, **more}
        response = httpx.post(self.url, json=body, headers=self.headers, timeout=60)
        response.raise_for_status()
        return dict(response.json())

    def stream(self, messages: list[dict[str, Any]]) -> Future[str]:
        """The text of the whole answer, once it has come."""
        return self.threads.submit(self._read, messages)

    def _read(self, messages: list[dict[str, Any]]) -> str:
        body = {"model": MODEL, "messages": messages, "stream": True}
        with httpx.stream("POST", self.url, json=body, headers=self.headers, timeout=60) as response:
            lines = [line.removeprefix("data: ") for line in response.iter_lines() if line.startswith("data: ")]
        deltas = [choice["delta"] for line in lines[:-1] for choice in json.loads(line).get("choices", ())]
        return "".join(delta.get("content") or "" for delta in deltas)


@pytest.fixture
def client(served: Stack) -> Iterator[Client]:
    with ThreadPoolExecutor(1) as threads:
        yield Client(served, threads)


def counting(*, seconds: float, prompt_tokens: int) -> dict[str, Any]:
    """An answer that takes so long."""
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": 60}
    return {"text": [f"{number} " for number in range(60)], "delay": seconds / 60, "usage": usage}


def watch(page: Page, stack: Stack, answer: dict[str, Any]) -> None:
    sign_in(page, stack, f"/dialogs/{answer['dominds']['dialog']}/")
    expect(page.locator("#client-bar")).to_contain_text("A client with the key “laptop” drives this conversation.")


def test_what_a_client_asked_for_is_watched_while_it_gets_it_and_stopped_by_a_person(
    page: Page, served: Stack, client: Client, faults: list[str]
) -> None:
    play(served, FIRST, counting(seconds=6, prompt_tokens=700), counting(seconds=30, prompt_tokens=200))
    watch(page, served, client.ask(HELLO, tools=[{"type": "function", "function": {"name": "weather"}}]))
    nothing_to_write_with(page)
    whole = watch_an_answer_grow(page, client)
    see_what_was_reported(page)
    stop_the_next_answer(page, client, whole)


def nothing_to_write_with(page: Page) -> None:
    expect(page.locator("#meter")).to_have_attribute("data-level", "healthy")
    expect(page.locator("#composer, #notebook, #autonomous")).to_have_count(0)
    expect(page.locator("#client-bar")).to_contain_text("1 tool")


def watch_an_answer_grow(page: Page, client: Client) -> str:
    whole = client.stream(AGAIN)
    live = page.locator("#live-blocks")
    expect(live).to_contain_text("3 4 5")
    assert not whole.done()
    expect(page.locator("#stop")).to_be_visible()
    expect(live).to_contain_text("10 11 12")
    assert whole.result(60).split() == [str(number) for number in range(60)]
    expect(answers(page).last).to_contain_text("57 58 59")
    return whole.result()


def see_what_was_reported(page: Page) -> None:
    expect(page.locator("#meter")).to_have_attribute("data-level", "caution")
    expect(page.locator("#meter")).to_contain_text("700")
    expect(page.locator("#turn")).not_to_contain_text("reminder")
    # Tools are told with each request: this one brought none.
    expect(page.locator("#client-bar")).to_contain_text("0 tools")


def stop_the_next_answer(page: Page, client: Client, before: str) -> None:
    again = [*AGAIN, {"role": "assistant", "content": before}, {"role": "user", "content": "Once more."}]
    whole = client.stream(again)
    expect(page.locator("#live-blocks")).to_contain_text("0 1 2")

    page.keyboard.press("Escape")

    expect(answers(page).last.get_by_text("stopped")).to_be_visible()
    assert whole.result(20).split()[:3] == ["0", "1", "2"]


def test_it_has_a_shelf_and_its_page_is_accessible_and_fits_a_phone(
    page: Page, served: Stack, client: Client, faults: list[str]
) -> None:
    play(served, FIRST)
    text = {"type": "text", "text": "Where am I listed?"}
    told = client.ask([{"role": "user", "content": [text, picture(bytes_more=300)]}])
    sign_in(page, served)
    page.get_by_role("navigation", name="Shelves").get_by_role("link", name="API").press("Enter")
    listed = page.locator(".row").filter(has_text="Where am I listed?")
    expect(listed).to_contain_text("A client drives it through the API")
    assert violations(page, "#dialogs") == []

    page.set_viewport_size({"width": 360, "height": 740})
    watch(page, served, told)
    assert page.locator(".attachment img").evaluate("(image) => image.decode().then(() => image.naturalWidth)") == 1
    assert not page.evaluate(SCROLLS_SIDEWAYS)
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        assert violations(page, "body") == []
