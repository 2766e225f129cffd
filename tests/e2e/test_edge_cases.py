"""The edge cases of live compaction, each from the page through HTTP, Celery and Redis and back.

One Dominds for all. The scripted provider says what each case needs; where LM Studio itself matters, a stand-in does.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.dialogs.compacting_builders import RULE, long_text
from tests.e2e.steps import PATIENCE_MS, answers, ask, begin_dialog, play, send
from tests.stack import Stack
from tests.standins.lmstudio import LMStudioStandin
from tests.standins.serving import serving

pytestmark = pytest.mark.e2e

LIMIT = 4000
ROWS = """
from dialogs.models import LLM, Agent, Provider
script = Provider.objects.create(name="scripted", kind="scripted", base_url="script.json")
studio = Provider.objects.create(name="studio", kind="lmstudio", base_url="{studio}")
llm = LLM.objects.create(provider=script, model_id="scripted", context_length=100_000, context_length_source="admin")
LLM.objects.create(provider=studio, model_id="tiny")
Agent.objects.create(name="Helper", slug="helper", instructions="You help.", llm=llm, workspace_enabled=True)
"""
AGENT = """
from dialogs.models import LLM, Agent
Agent.objects.exclude(slug="helper").delete()
LLM.objects.filter(model_id="tiny").update(context_length=None, context_length_source="", limits_read_at=None)
LLM.objects.filter(model_id="scripted").update(context_length={window}, prefill="refused")
Agent.objects.update(llm=LLM.objects.get(model_id={model!r}), context_limit={limit}, context_budget=bool({limit}))
"""
PRUNER = """
from dialogs.models import LLM, Agent
from health.models import ContextSettings
pruner = Agent.objects.create(name="Pruner", slug="pruner", llm=LLM.objects.get(model_id="scripted"))
ContextSettings.objects.update_or_create(pk=1, defaults={"pruning_agent": pruner})
"""
HISTORY = """
from dialogs.models import Dialog
from tests.dialogs.compacting_builders import a_history
a_history(Dialog.objects.latest("created_at"), pairs={pairs})
"""


@pytest.fixture(scope="module")
def studio() -> LMStudioStandin:
    return LMStudioStandin(context=LIMIT, answer="The rotor shows 44 units.")


@pytest.fixture(scope="module")
def world(stack: Stack, studio: LMStudioStandin) -> Iterator[Stack]:
    (stack.data_dir / "workspaces" / "helper").mkdir(parents=True, exist_ok=True)
    with serving(studio.app()) as url:
        stack.shell(ROWS.format(studio=url))
        yield stack


@pytest.fixture
def page_of(page: Page, world: Stack, faults: list[str]) -> Any:
    """A new dialog's page, with the agent's model, its limit, and how much was said before."""

    def begin(*, model: str = "scripted", limit: int | None = LIMIT, pairs: int = 0, window: int = 100_000) -> Page:
        world.shell(AGENT.format(model=model, limit=limit, window=window))
        begin_dialog(page, world)
        world.shell(HISTORY.format(pairs=pairs))
        page.reload()
        page.wait_for_load_state()
        return page

    return begin


def a_file(stack: Stack, name: str, *, sentences: int) -> str:
    """What the agent's tool `read_file` finds."""
    text = long_text(77, sentences)
    (stack.data_dir / "workspaces" / "helper" / name).write_text(text)
    return text


def reading(name: str, number: int = 1) -> dict[str, Any]:
    call = {"id": f"call-{number}", "name": "read_file", "arguments": json.dumps({"path": name})}
    return {"tool_calls": [call], "finish": "tool_calls"}


def requests(stack: Stack) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (stack.data_dir / "script.json.requests.jsonl").read_text().splitlines()]


def everything(request: dict[str, Any]) -> str:
    return json.dumps(request["messages"], ensure_ascii=False)


def divider(page: Page, state: str) -> Locator:
    return page.locator(f'.divider[data-state="{state}"]')


def error(page: Page) -> Locator:
    return page.locator(".attempt-row")


def test_tool_result_causes_overflow(page_of: Any, world: Stack) -> None:
    result = a_file(world, "report.txt", sentences=60)
    page = page_of(pairs=6)
    play(world, reading("report.txt"), {"text": "I have read it."})

    ask(page, "Read the report.")

    expect(answers(page).last).to_contain_text("I have read it.")
    expect(divider(page, "applied")).to_have_count(1)
    first, second = requests(world)
    assert second["messages"][-1]["tool_call_id"] == "call-1"
    assert result in second["messages"][-1]["content"]
    assert len(second["messages"]) < len(first["messages"])
    assert "Never deploy on a Friday" in everything(second)


def test_results_that_fill_the_context_again_and_again_are_worked_through(page_of: Any, world: Stack) -> None:
    results = [a_file(world, f"part-{number}.txt", sentences=70) for number in range(4)]
    page = page_of(pairs=12)
    play(world, *(reading(f"part-{number}.txt", number) for number in range(4)), {"text": "I have read all four."})

    ask(page, "Read the four parts.")

    expect(answers(page).last).to_contain_text("I have read all four.")
    assert divider(page, "applied").count() >= 3
    expect(error(page)).to_have_count(0)
    assert results[-1] in everything(requests(world)[-1])


def test_pruning_agent_failure(page_of: Any, world: Stack, studio: LMStudioStandin) -> None:
    page = page_of(model="tiny", limit=None, pairs=16)
    play(world, {"error": {"code": "provider_failed", "message": "out of paper"}})
    world.shell(PRUNER)

    ask(page, "What does the rotor show?")

    (pruning,), request = requests(world), studio.asked[-1]
    assert "You prune the history" in pruning["messages"][0]["content"]
    assert request["messages"][0]["role"] == "system"
    assert 5 <= len(request["messages"]) <= 12
    assert RULE.split(",")[0] in everything(request)
    assert studio.refused == 0
    expect(answers(page).last).to_contain_text("The rotor shows 44 units.")
    expect(divider(page, "applied")).to_have_count(1)
    assert "the pruning model scripted/scripted gave no answer: ProviderFailed: out of paper" in world.log()


def test_missing_context_limit(page_of: Any, world: Stack, studio: LMStudioStandin) -> None:
    """The model is not asked, until it provides one."""
    studio.loaded, asked = False, len(studio.asked)
    page = page_of(model="tiny", limit=None)

    send(page, "Hello?")
    expect(error(page)).to_contain_text("Load it in LM Studio", timeout=PATIENCE_MS)
    assert "Load it in LM Studio" in world.log()
    assert len(studio.asked) == asked

    studio.loaded = True
    page.get_by_role("button", name="Retry").click()
    expect(answers(page)).to_contain_text("The rotor shows 44 units.", timeout=PATIENCE_MS)


def test_very_long_single_tool_result(page_of: Any, world: Stack) -> None:
    result = a_file(world, "book.txt", sentences=250)
    page = page_of()
    play(world, reading("book.txt"), {"text": "I have read what there was."})

    ask(page, "Read the book.")

    expect(answers(page).last).to_contain_text("I have read what there was.")
    expect(divider(page, "applied")).to_have_count(1)
    expect(page.locator(".message-row", has_text="The model sees a shortened version of this.")).to_have_count(1)
    sent = requests(world)[-1]["messages"][-1]["content"]
    assert 0 < len(sent) < len(result)


def test_streaming_restart_mid_generation(page_of: Any, world: Stack) -> None:
    words = [f"{word} " for word in long_text(3, sentences=70).split()]
    page = page_of(pairs=8, limit=None, window=LIMIT)
    play(world, {"text": words}, {"text": "and that is all."})

    ask(page, "Tell me everything.")

    expect(divider(page, "continued")).to_contain_text("Context compacted, continuing...")
    first, second = requests(world)
    half = second["messages"][-2]["content"]
    assert "".join(words).startswith(half)
    assert len(half) < len("".join(words))
    shown = answers(page).last.locator("template.source").evaluate("node => node.content.textContent")
    assert shown.split() == f"{half} and that is all.".split()
    assert len(everything(second)) < len(everything(first)) + len(half)


def test_context_manager_not_present(page_of: Any, world: Stack) -> None:
    result = a_file(world, "book.txt", sentences=250)
    page = page_of(limit=None, pairs=12)
    play(world, reading("book.txt"), {"text": "I have read it."})

    ask(page, "Read the book.")

    expect(answers(page).last).to_contain_text("I have read it.")
    _first, second = requests(world)
    assert result in second["messages"][-1]["content"]
    assert len(second["messages"]) == 1 + 24 + 3
    expect(page.locator(".divider")).to_have_count(0)
