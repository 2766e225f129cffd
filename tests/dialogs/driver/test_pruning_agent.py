"""The pruning agent: whose model is asked, what it is shown, and that no answer of its can harm the dialog."""

from __future__ import annotations

import asyncio
import json
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings, settings
from django.db import OperationalError, connection

from dialogs.compaction import facts, pruning_agent
from dialogs.compaction.pruning_agent import TooLarge, pruning_llm, request_for
from dialogs.compaction.work import perform
from dialogs.compaction.writes.compaction import queue_run
from dialogs.context.estimate import present_context
from dialogs.llms.counter import counter_without_tools
from dialogs.llms.guard import LMSTUDIO_CHAIN, by_limit
from dialogs.models import LLM, Agent, Dialog, Provider
from dialogs.providers.pool import slot
from dialogs.turns.reads.events import cause_of
from health.compaction.terms.ports import Prune
from health.compaction.terms.units import Role, Unit
from health.configured import ONLY
from health.models import CompactionRun, ContextEvent, ContextSettings, LlmCalibration
from tests.dialogs.compacting_builders import RULE, a_history, guard, sentence
from tests.dialogs.driver.conftest import Play, ask_and_drive
from tests.standins.lmstudio import LMStudioStandin
from tests.standins.serving import serving

pytestmark = pytest.mark.django_db(transaction=True)
Status = CompactionRun.Status


def compacted(dialog: Dialog) -> CompactionRun:
    """The run of LM Studio's chain over a history that is too long."""
    guard(dialog)
    a_history(dialog, pairs=16)
    run = queue_run(dialog, guard=replace(by_limit(dialog), chain=LMSTUDIO_CHAIN), trigger="pre_request")
    perform(run.pk, embedder="static")
    run.refresh_from_db()
    return run


def dropping(*ids: int) -> dict[str, Any]:
    return {"text": json.dumps({"drop": [str(pk) for pk in ids], "summaries": [], "summary": "Old readings."})}


@pytest.fixture
def another_agent(db: Any) -> Agent:
    """An agent on a server of its own, to prune with, which nobody has asked yet."""
    Path(settings.DOMINDS_DATA_DIR, "pruner.json.requests.jsonl").unlink(missing_ok=True)
    Path(settings.DOMINDS_DATA_DIR, "pruner.json").write_text(json.dumps({"steps": [{"text": "no JSON at all"}]}))
    provider = Provider.objects.create(name="pruner", kind="scripted", base_url="pruner.json")
    llm = LLM.objects.create(provider=provider, model_id="pruner-1", context_length=50_000)
    return Agent.objects.create(name="Pruner", slug="pruner", llm=llm)


def choose(agent: Agent) -> None:
    ContextSettings.objects.update_or_create(pk=ONLY, defaults={"pruning_agent": agent})


def asked_of_pruner() -> list[dict[str, Any]]:
    log = Path(settings.DOMINDS_DATA_DIR, "pruner.json.requests.jsonl")
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def test_the_agents_own_model_is_asked_for_json_and_shown_neither_rules_nor_the_newest_messages(
    dialog: Dialog, play: Play
) -> None:
    requests = play({"text": "no JSON at all"})

    compacted(dialog)

    (asked,) = requests()
    shown, options = asked["messages"][1]["content"], asked["options"]
    assert (asked["model"], asked.get("tools") or []) == ("tiny", [])
    assert asked["messages"][0]["content"].startswith("You prune the history of a conversation")
    assert options["response_format"]["type"] == "json_schema"
    assert options["chat_template_kwargs"] == {"enable_thinking": False}, "no thoughts"
    assert RULE not in shown
    assert present_context(dialog).branch[-1].content not in shown


def test_a_chosen_agents_model_is_asked(dialog: Dialog, play: Play, another_agent: Agent) -> None:
    requests = play({"text": "no JSON at all"})
    choose(another_agent)

    compacted(dialog)

    assert requests() == []
    assert asked_of_pruner()[-1]["model"] == "pruner-1"


@pytest.mark.parametrize("what", ["agent", "llm", "provider"])
def test_a_chosen_agent_that_cannot_be_used_is_replaced_by_the_dialogs_own_model(
    dialog: Dialog, another_agent: Agent, play: Play, what: str
) -> None:
    play({"text": "no JSON at all"})
    choose(another_agent)
    disabled = {"agent": another_agent, "llm": another_agent.llm, "provider": another_agent.llm.provider}[what]
    disabled.enabled = False
    disabled.save()

    assert pruning_llm(compacted(dialog).dialog) == dialog.llm


def test_what_it_drops_leaves_the_view(dialog: Dialog, play: Play) -> None:
    guard(dialog)
    said = a_history(dialog, pairs=16)
    # It is shown the history in two pieces, each of at most half the limit.
    play(dropping(*[message.pk for message in said[2:14]]), dropping(*[message.pk for message in said[20:26]]))
    run = queue_run(dialog, guard=replace(by_limit(dialog), chain=LMSTUDIO_CHAIN), trigger="pre_request")

    perform(run.pk, embedder="static")

    run.refresh_from_db()
    assert run.status == Status.APPLIED
    assert next(step for step in run.steps if step["changed"])["phase"] == "prune_with_agent"
    assert said[2].pk in run.removed


@pytest.mark.parametrize(
    "answer",
    [
        {"text": "no JSON at all"},
        {"text": ""},
        {"text": '{"drop": ["999999"]}'},
        {"text": '{"drop": "all"}'},
        {"text": '{"drop": [', "finish": "length"},
        {"error": {"code": "provider_failed", "message": "down"}},
        {"error": {"code": "context_overflow", "message": "too long"}},
    ],
    ids=["prose", "nothing", "invented id", "wrong type", "cut short", "server error", "overflow"],
)
def test_no_answer_of_its_keeps_the_dialog_from_going_on(dialog: Dialog, play: Play, answer: dict[str, Any]) -> None:
    play(answer)

    run = compacted(dialog)

    assert run.status == Status.APPLIED
    assert run.estimated_after is not None
    assert run.estimated_after <= 3500
    assert "passages_keep_last_five" in [step["phase"] for step in run.steps if step["changed"]]


def test_lm_studio_is_asked_within_its_window_although_the_pruning_agent_fails(
    dialog: Dialog, another_agent: Agent, caplog: pytest.LogCaptureFixture
) -> None:
    studio = LMStudioStandin(context=4000, answer="The rotor shows 44 units.")
    choose(another_agent)
    failing = {"steps": [{"error": {"code": "provider_failed", "message": "out of paper"}}]}
    Path(settings.DOMINDS_DATA_DIR, "pruner.json").write_text(json.dumps(failing))
    with serving(studio.app()) as url:
        served_by_lm_studio(dialog.llm, url)
        a_history(dialog, pairs=16)
        ask_and_drive(dialog, "What does the rotor show?")

    (pruning,), (request,) = asked_of_pruner(), studio.asked
    assert pruning["messages"][0]["content"].startswith("You prune the history of a conversation")
    assert request["messages"][0]["role"] == "system"
    assert 5 <= len(request["messages"]) <= 20  # of 34
    assert RULE.split(",")[0] in json.dumps(request["messages"])
    assert (studio.refused, CompactionRun.objects.get().status) == (0, Status.APPLIED)
    assert dialog.current_leaf is not None
    assert dialog.current_leaf.content == studio.answer
    assert "the pruning model pruner/pruner-1 gave no answer: ProviderFailed: out of paper" in caplog.text


def served_by_lm_studio(llm: LLM, url: str) -> None:
    """Nobody has written its window down."""
    llm.provider.kind, llm.provider.base_url = "lmstudio", url
    llm.provider.save()
    llm.context_length, llm.context_length_source, llm.optimal_max_tokens = None, "", None
    llm.compaction = "automatic"
    llm.save()


def test_a_failure_is_logged_with_its_cause_and_it_is_not_asked_a_second_time_in_that_run(
    dialog: Dialog, play: Play
) -> None:
    requests = play({"error": {"code": "provider_failed", "message": "down"}})

    compacted(dialog)

    assert len(requests()) == 1
    event = ContextEvent.objects.get(code="PRUNER_FAILED")
    assert event.facts["cause"].startswith("ProviderFailed")


def test_where_it_cannot_be_told_who_is_asked_the_run_goes_on_without_and_that_is_logged(
    dialog: Dialog, play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(_dialog: Dialog) -> LLM:
        raise OperationalError("the database is away for a moment")

    requests = play({"text": "no JSON at all"})
    monkeypatch.setattr(pruning_agent, "pruning_llm", away)
    monkeypatch.setattr(facts, "pruning_llm", away)

    run = compacted(dialog)

    assert (run.status, requests()) == (Status.APPLIED, [])
    assert ContextEvent.objects.get(code="PRUNER_FAILED").facts["cause"].startswith("OperationalError")


@pytest.mark.parametrize(
    ("answer", "cause"),
    [("no JSON at all", "it is no JSON"), ('{"drop": ["999999"]}', "which it was not shown"), ('{"drop": []}', "≈0%")],
)
def test_a_decision_that_is_not_followed_is_logged_with_its_cause(
    dialog: Dialog, play: Play, caplog: pytest.LogCaptureFixture, answer: str, cause: str
) -> None:
    play(*[{"text": answer}] * 2)

    run = compacted(dialog)

    event = ContextEvent.objects.get(code="PRUNER_FAILED")
    assert event.run == run
    assert cause in event.facts["cause"]
    assert cause in caplog.text
    assert cause in cause_of(event)


def test_who_was_asked_is_logged_also_where_it_is_switched_off_meanwhile(dialog: Dialog, another_agent: Agent) -> None:
    Path(settings.DOMINDS_DATA_DIR, "pruner.json").write_text(json.dumps({"steps": [{"text": "No", "delay": 0.5}]}))
    choose(another_agent)

    def switch_off() -> None:
        for _look in range(3000):
            if asked_of_pruner():
                break
            time.sleep(0.01)
        Agent.objects.filter(pk=another_agent.pk).update(enabled=False)
        connection.close()

    with ThreadPoolExecutor() as beside:
        beside.submit(switch_off)
        compacted(dialog)

    assert ContextEvent.objects.get(code="PRUNER_FAILED").facts["llm"] == another_agent.llm.slug


def test_a_server_that_refuses_to_be_asked_for_json_is_asked_in_words(dialog: Dialog, play: Play) -> None:
    refusal = {"error": {"code": "request_refused", "message": "response_format is not supported"}}
    requests = play(refusal, {"text": "no JSON at all"})

    compacted(dialog)

    assert [bool(request.get("options")) for request in requests()] == [True, False]


def test_thoughts_that_leave_no_room_for_the_answer_are_given_room_once(dialog: Dialog, play: Play) -> None:
    requests = play({"reasoning": "Which of them?", "finish": "length"}, {"text": "no JSON at all"})

    compacted(dialog)

    first, second = requests()
    assert second["max_output_tokens"] > first["max_output_tokens"] + 3000


def test_where_its_provider_has_no_slot_in_time_the_run_goes_on_without_it(
    dialog: Dialog, play: Play, settings: LazySettings
) -> None:
    settings.DOMINDS_PRUNING_SECONDS = 0.5
    requests = play({"text": "no JSON at all"})
    provider = dialog.llm.provider
    provider.max_concurrent = 1
    provider.save()

    async def meanwhile() -> CompactionRun:
        async with slot(provider.name, most=1):
            return await asyncio.to_thread(compacted, dialog)

    run = asyncio.run(meanwhile())

    assert (run.status, requests()) == (Status.APPLIED, [])
    assert ContextEvent.objects.get(code="PRUNER_FAILED").facts["cause"].startswith("TimeoutError")


@pytest.mark.parametrize("window", [200, 900])
def test_a_piece_that_does_not_fit_its_window_is_not_sent(llm: LLM, window: int) -> None:
    llm.context_length = window
    unit = Unit(id="1", role=Role.USER, content="word " * 800, estimated_tokens=800)

    with pytest.raises(TooLarge):
        request_for(llm, Prune(units=(unit,), target_tokens=400), counter_without_tools(llm))


def test_its_answer_has_a_bound_and_what_its_server_reported_so_far_is_allowed_for(llm: LLM) -> None:
    unit = Unit(id="1", role=Role.USER, content="word " * 800, estimated_tokens=800)
    need = Prune(units=(unit,), target_tokens=400)
    for llm.context_length, bound in ((10_000, 600), (2000, 200)):
        assert request_for(llm, need, counter_without_tools(llm)).max_output_tokens == bound
    LlmCalibration.objects.create(llm=llm, samples=[[100, 100, 200], [200, 200, 400], [100, 200, 200]])

    with pytest.raises(TooLarge):
        request_for(llm, need, counter_without_tools(llm))


def least_window(llm: LLM) -> int:
    """The smallest window in which the same piece can be asked about."""
    need = Prune(units=(Unit(id="1", role=Role.USER, content="word " * 800, estimated_tokens=800),), target_tokens=100)
    for llm.context_length in range(500, 3000, 10):
        with suppress(TooLarge):
            request_for(llm, need, counter_without_tools(llm))
            return llm.context_length
    raise AssertionError("It fits no window.")


def test_a_server_that_leaves_out_the_tools_of_dialogs_does_not_make_text_cheaper(llm: LLM) -> None:
    row = LlmCalibration.objects.create(llm=llm, samples=[[1000, 1000, 1000]] * 5)
    before = least_window(llm)
    row.samples = [[1000, 1000, 500]] * 5
    row.save()

    assert least_window(llm) == before


def test_where_nothing_is_reported_yet_a_foreign_vocabulary_is_not_trusted_to_the_last_token(llm: LLM) -> None:
    llm.model_id = "gpt-4"
    exact = least_window(llm)
    llm.model_id = "a-name-of-no-family"

    assert least_window(llm) > 1.15 * exact


# --- Summaries --------------------------------------------------------------------------------


def summarised(dialog: Dialog, *, by: str = "model") -> CompactionRun:
    """The run of a chain that begins with summaries, over a history that is too long."""
    chain = "breaking_strategy: {chain_order: [summarize_old, truncate]}"
    values = f"context_config:\n  how: chain\n  summaries: {by}\n  {chain}\n"
    ContextSettings.objects.update_or_create(pk=ONLY, defaults={"values": values})
    guard(dialog)
    a_history(dialog, pairs=16)
    run = queue_run(dialog, guard=by_limit(dialog), trigger="pre_request")
    perform(run.pk, embedder="static")
    run.refresh_from_db()
    return run


def summary_in(run: CompactionRun) -> str:
    texts = [str(entry.get("content") or "") for entry in run.view]
    return next(text for text in texts if "[Summary of" in text)


def test_where_staff_chose_it_the_model_writes_the_summary(dialog: Dialog, play: Play) -> None:
    words = f"Facts and identifiers:\n{' '.join(sentence(number) for number in (101, 201, 301, 601, 701))}"
    requests = play({"text": words})

    run = summarised(dialog)

    assert requests()[0]["messages"][0]["content"].startswith("You condense a part of a conversation")
    assert words in summary_in(run), [step["note"] for step in run.steps]


@pytest.mark.parametrize(
    "answer",
    [{"text": "The code of the safe is 471155."}, {"error": {"code": "provider_failed", "message": "down"}}],
    ids=["invents", "fails"],
)
def test_a_summary_that_cannot_be_trusted_is_made_of_sentences(
    dialog: Dialog, play: Play, answer: dict[str, Any]
) -> None:
    play(answer)

    run = summarised(dialog)

    assert run.status == Status.APPLIED
    assert "471155" not in str(run.view)
    assert "Reading" in summary_in(run)


def test_elsewhere_no_model_is_asked_for_one(dialog: Dialog, play: Play) -> None:
    requests = play({"text": "Done."})

    summarised(dialog, by="extractive")

    assert requests() == []


def test_its_answer_may_be_as_long_as_what_it_is_told_to_leave(llm: LLM) -> None:
    """Where nothing of what it is shown has room, it is told to free 95 % all the same."""
    llm.context_length = 20_000
    unit = Unit(id="1", role=Role.USER, content="word " * 4_000, estimated_tokens=4_000)

    asked = request_for(llm, Prune(units=(unit,), target_tokens=0), counter_without_tools(llm))

    assert "Free about 95%" in asked.messages[0].content
    assert asked.max_output_tokens == 0.05 * 4_000 + 200
