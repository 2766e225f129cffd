"""The state of a context as JSON: for its owner alone, measured and estimated apart, five counters that never mix."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from dialogs.api.writes.api_keys import create_key
from dialogs.context.estimate import present_tokens
from dialogs.models import LLM, Agent, Course, Dialog, Message
from dialogs.turns.reads.turns import dialog_to_drive
from dialogs.turns.writes.messages import post_message
from health.models import ContextEvent
from tests.builders import a_generation, a_reading
from tests.dialogs.compacting_builders import a_history, guard
from tests.dialogs.compaction_runs import a_run, a_step, an_applied_run


def state(client: Client, dialog: Dialog) -> Any:
    response = client.get(f"/dialogs/{dialog.pk}/context.json")
    assert response.status_code == 200
    return response.json()


def test_an_empty_dialog_has_a_state_too(as_alice: Client, dialog: Dialog) -> None:
    found = state(as_alice, dialog)

    assert (found["messages"], found["health"], found["open_run"], found["compactions"]) == (0, None, None, [])
    assert not found["restart_requested"]
    assert found["budget"]["pressure"] is None


def test_health_is_what_the_provider_reported(as_alice: Client, dialog: Dialog) -> None:
    post_message(dialog=dialog, content="Hello")
    a_reading(dialog, 600, total_tokens=607)

    health = state(as_alice, dialog)["health"]

    assert (health["kind"], health["level"], health["percent"]) == ("measured", "caution", 60.0)
    assert [health[f"{name}_tokens"] for name in ("prompt", "completion", "total", "cached")] == [600, 7, 607, None]
    assert health["context_window"] == 1000


def test_an_answer_under_way_is_estimated_with_its_prompt(as_alice: Client, dialog: Dialog) -> None:
    post_message(dialog=dialog, content="Hello")
    dialog.refresh_from_db()
    assert state(as_alice, dialog)["answer"] is None

    a_generation(dialog, status="running", partial_text="word " * 100, partial_reasoning="thought " * 50)

    found = state(as_alice, dialog)
    answer = found["answer"]
    assert (answer["kind"], answer["window"]) == ("estimated", 1000)
    assert answer["answer_tokens"] >= 140
    assert answer["tokens"] == found["budget"]["tokens"] + answer["answer_tokens"]
    assert answer["percent"] == round(answer["tokens"] / 10, 1)


def test_what_was_not_reported_is_null_and_never_an_estimate(as_alice: Client, dialog: Dialog) -> None:
    post_message(dialog=dialog, content="Hello")
    a_reading(dialog, None)

    found = state(as_alice, dialog)

    assert (found["health"]["prompt_tokens"], found["health"]["percent"]) == (None, None)
    assert found["budget"]["tokens"] > 0


def test_the_budget_is_an_estimate_whose_parts_add_up(as_alice: Client, dialog: Dialog) -> None:
    a_history(dialog, pairs=6)
    guard(dialog, limit=5000)

    found = state(as_alice, dialog)

    budget = found["budget"]
    assert (found["messages"], budget["kind"], budget["limit"]) == (12, "estimated", 5000)
    assert budget["tokens"] == sum(budget["parts"].values()) == present_tokens(dialog_to_drive(dialog.pk))
    assert budget["percent"] == round(100 * budget["tokens"] / 5000, 1)
    assert budget["trace"][0].keys() == {"what", "tokens", "source"}
    assert budget["counter"]
    assert budget["grade"]
    assert (budget["min_limit"], budget["warning_threshold"]) == (3500, 0.8)
    # Nothing measured among them.
    assert not {name for name in budget if name.startswith(("prompt", "completion"))}


@pytest.mark.parametrize(("model", "family"), [("mistral-nemo", "mistral"), ("nobody-knows-7b", "")])
def test_the_models_family_stands_beside_the_counter(as_alice: Client, dialog: Dialog, model: str, family: str) -> None:
    LLM.objects.update(model_id=model)

    shown = as_alice.get(f"/dialogs/{dialog.pk}/budget/").content.decode()

    assert state(as_alice, dialog)["budget"]["family"] == family
    assert ("family by the model’s name: mistral" in shown) == bool(family)


@pytest.mark.parametrize(("pairs", "pressure"), [(2, "normal"), (40, "overflow")])
def test_the_pressure_follows_from_the_estimate(as_alice: Client, dialog: Dialog, pairs: int, pressure: str) -> None:
    a_history(dialog, pairs=pairs)
    guard(dialog)

    assert state(as_alice, dialog)["budget"]["pressure"] == pressure


@pytest.mark.parametrize(("trigger", "restarts"), [("tool_result", True), ("manual", False)])
def test_a_tools_result_that_would_overflow_asks_for_a_restart_and_what_a_person_compacts_for_none(
    as_alice: Client, dialog: Dialog, trigger: str, restarts: bool
) -> None:
    post_message(dialog=dialog, content="Hello")
    dialog.refresh_from_db()
    run = a_run(dialog, trigger=trigger)

    found = state(as_alice, dialog)

    assert found["restart_requested"] is restarts
    assert (found["open_run"]["id"], found["open_run"]["trigger"]) == (run.pk, trigger)


def test_compactions_so_far_are_told_without_a_word_of_the_dialog(as_alice: Client, dialog: Dialog) -> None:
    a_history(dialog, pairs=1)
    view = [{"content": "A secret summary.", "kind": "summary"}]
    an_applied_run(dialog, view=view)
    a_run(dialog, status="failed", reason="It does not fit.")

    found = state(as_alice, dialog)

    told = [(run["status"], run["estimated_before"], run["estimated_after"]) for run in found["compactions"]]
    assert told == [("applied", 4500, 3420), ("failed", None, None)]
    assert found["compactions"][1]["reason"] == "It does not fit."
    assert "secret" not in str(found)


def counters(client: Client, dialog: Dialog) -> dict[str, tuple[int, int]]:
    found = state(client, dialog)["counters"]
    return {name: (count["value"], count["most"]) for name, count in found.items()}


def test_the_five_counters_have_five_scopes(as_alice: Client, dialog: Dialog) -> None:
    found = state(as_alice, dialog)["counters"]

    assert {name: count["scope"] for name, count in found.items()} == {
        "countdown_turns": "dialog",
        "restarts": "request",
        "hybrid_iterations": "break",
        "retry_attempts": "call",
        "overflows": "agent-hour",
    }
    assert counters(as_alice, dialog) == {
        "countdown_turns": (5, 5),
        "restarts": (0, 3),
        "hybrid_iterations": (0, 3),
        "retry_attempts": (0, 3),
        "overflows": (0, 2),
    }


def changed(client: Client, dialog: Dialog) -> dict[str, tuple[int, int]]:
    """The counters that do not stand where they begin."""
    start = {"countdown_turns": 5}
    return {name: count for name, count in counters(client, dialog).items() if count[0] != start.get(name, 0)}


def test_the_countdown_is_the_courses(as_alice: Client, dialog: Dialog) -> None:
    Course.objects.filter(dialog=dialog).update(countdown_turns=2)

    assert changed(as_alice, dialog) == {"countdown_turns": (2, 5)}


def test_restarts_are_the_compactions_of_this_turn(as_alice: Client, dialog: Dialog) -> None:
    for status in ("applied", "failed"):
        a_run(dialog, status=status)
    a_run(dialog, status="applied", turn=99)
    a_run(dialog, status="applied", trigger="manual")

    assert changed(as_alice, dialog) == {"restarts": (2, 3)}


def test_iterations_are_those_of_the_newest_run(as_alice: Client, dialog: Dialog) -> None:
    names = ("detection", "trim_payloads", "summarize_old", "summarize_old", "success")
    a_run(dialog, trigger="manual", status="applied", steps=[a_step("summarize_old", 9, 8)] * 3)
    a_run(dialog, trigger="manual", status="applied", steps=[a_step(name, 4500, 4400) for name in names])

    assert changed(as_alice, dialog) == {"hybrid_iterations": (2, 3)}


def test_retries_are_those_of_the_due_answer(as_alice: Client, dialog: Dialog) -> None:
    post_message(dialog=dialog, content="Hello")
    dialog.refresh_from_db()
    later = timezone.now() + timedelta(minutes=1)
    a_generation(dialog, status="failed", retry_at=later)
    a_generation(dialog, status="interrupted")

    assert changed(as_alice, dialog) == {"retry_attempts": (1, 3)}


def test_overflows_are_the_agents_within_an_hour(
    as_alice: Client, dialog: Dialog, alice: User, bob: User, agent: Agent
) -> None:
    def overflow(owner: User, with_agent: Agent, minutes: int, code: str = "OVER_HIT") -> None:
        there = Dialog.objects.create(owner=owner, agent=with_agent, llm=agent.llm, active_at=timezone.now())
        event = ContextEvent.objects.create(code=code, dialog=there)
        ContextEvent.objects.filter(pk=event.pk).update(happened_at=timezone.now() - timedelta(minutes=minutes))

    other = Agent.objects.create(name="Zoe", slug="zoe", llm=agent.llm)
    overflow(alice, agent, 1)
    overflow(alice, agent, 50)
    overflow(alice, agent, 70)
    overflow(alice, other, 1)
    overflow(alice, agent, 1, "BREAKER_FAILED")
    overflow(bob, agent, 1)

    assert changed(as_alice, dialog) == {"overflows": (2, 2)}
    assert Message.objects.count() == 0


@pytest.mark.parametrize("path", ["context.json", "context/stats", "context/snapshot", "context/messages"])
def test_a_program_reads_it_with_a_key_of_the_owner(
    client: Client, alice: User, bob: User, dialog: Dialog, path: str
) -> None:
    url = f"/dialogs/{dialog.pk}/{path}"
    mine, bobs = (create_key(owner=owner, name="program")[1] for owner in (alice, bob))
    _key, chats = create_key(owner=alice, name="plugin", scope="chat_only")
    secrets = (mine, bobs, "x", chats)

    codes = [client.get(url, headers={"Authorization": f"Bearer {secret}"}).status_code for secret in secrets]

    assert codes == [200, 404, 401, 403]
    assert client.get(url).status_code == 302
    assert client.post(url, headers={"Authorization": f"Bearer {mine}"}).status_code == 405


def test_each_message_has_its_importance(as_alice: Client, dialog: Dialog) -> None:
    a_history(dialog, pairs=2)

    found = as_alice.get(f"/dialogs/{dialog.pk}/context/messages").json()["messages"]

    assert [(one["role"], one["importance"]) for one in found if one["role"] != "system"] == [
        ("user", 0.5),
        ("assistant", 0.5),
    ] * 2
    assert all(one["estimated_tokens"] > 0 for one in found)
