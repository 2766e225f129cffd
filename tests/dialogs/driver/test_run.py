"""A turn from the posted message to the recorded answer, against the scripted provider."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from typing import Any

import pytest
from channels.db import database_sync_to_async as in_db
from django.conf import LazySettings
from django.utils import timezone

from dialogs.context.reads import seen_by_generation
from dialogs.models import LLM, Dialog, Generation, Message, QueuedMessage
from dialogs.turns.writes.messages import edit_message, post_message, request_stop, retry
from health.models import HealthReading
from tests.builders import a_generation
from tests.dialogs.driver.conftest import USAGE, Play, a_call, ask, ask_and_drive, drive_until_idle, said

# Real transactions: the driver's thread opens and closes connections as it does in a worker.
pytestmark = pytest.mark.django_db(transaction=True)

SLOW = {"text": ["one ", "two ", "three "] * 30, "delay": 0.1, "usage": USAGE}


async def stop_soon(dialog: Dialog) -> None:
    """Half a second after the provider has been asked, however busy the machine is."""
    while not await in_db(Generation.objects.filter(dialog=dialog).exists)():  # noqa: ASYNC110
        await asyncio.sleep(0.05)
    await asyncio.sleep(0.5)
    await in_db(request_stop)(dialog=dialog)


def contents(dialog: Dialog) -> list[str]:
    return list(dialog.messages.values_list("content", flat=True))


def test_an_answer_is_recorded_with_its_usage_and_its_reading(dialog: Dialog, play: Play) -> None:
    """With its reasoning beside it, the usage as it came, and what exactly was sent."""
    reported = {**USAGE, "prompt_tokens_details": {"cached_tokens": 8}, "of_this_provider_only": 1}
    play({"reasoning": ["Let me ", "think."], "text": ["Hi ", "there."], "usage": reported})
    question = ask(dialog)

    drive_until_idle(dialog)

    generation = Generation.objects.get()
    assert contents(dialog) == ["Hello", "Hi there."]
    assert dialog.current_leaf == generation.message
    assert dialog.messages.last().parts == {"reasoning": "Let me think."}
    assert (generation.status, generation.prompt_tokens, generation.completion_tokens) == ("finished", 120, 5)
    assert (generation.finish_reason, generation.usage_raw) == ("stop", reported)
    assert (generation.reading.level, generation.reading.hard_util) == ("healthy", 0.12)
    assert generation.manifest["messages"] == [question.pk]
    assert len(generation.manifest["instructions"]) == 64


def test_every_generation_has_a_reading_of_its_own_and_without_usage_it_is_unknown_and_holds_no_number(
    dialog: Dialog, play: Play
) -> None:
    reported = ({"text": "ok", "usage": {"prompt_tokens": n, "completion_tokens": 1}} for n in (10, 501, 901, 10))
    play(*reported, {"text": "Hi."})
    for _ in range(3):
        ask_and_drive(dialog)

    readings = HealthReading.objects.values_list("prompt_tokens", "level", "reason")
    assert [(tokens, level) for tokens, level, _reason in readings] == [
        *((10, "healthy"), (501, "caution"), (901, "critical"), (10, "healthy"), (None, "unknown"))
    ]
    assert readings[4][2] == "usage_unavailable"


def test_the_provider_gets_the_instructions_and_the_branch(dialog: Dialog, play: Play) -> None:
    """In which an edited message replaces the old one."""
    requests = play({"text": "Hi."})
    ask_and_drive(dialog, "One")
    two = ask(dialog, "Two")
    drive_until_idle(dialog)
    edit_message(dialog=dialog, message=two, content="Three")
    drive_until_idle(dialog)

    before = [("system", "You help."), ("user", "One"), ("assistant", "Hi.")]
    said = [[(message["role"], message["content"]) for message in request["messages"]] for request in requests()]
    assert said[1:] == [[*before, ("user", "Two")], [*before, ("user", "Three")]]


def test_a_stopped_answer_keeps_what_came(dialog: Dialog, play: Play) -> None:
    play(SLOW)
    ask(dialog)

    drive_until_idle(dialog, beside=lambda: stop_soon(dialog))

    answer = dialog.messages.last()
    assert answer.content.startswith("one two ")
    assert len(answer.content) < len("one two three ") * 30
    assert answer.cut_short
    assert Generation.objects.get().status == "stopped"
    assert HealthReading.objects.get().reason == "usage_unavailable"
    assert not dialog.stop_requested


def test_stopping_before_the_first_word_leaves_the_question(dialog: Dialog, play: Play) -> None:
    play({"hang": True})
    question = ask(dialog)

    drive_until_idle(dialog, beside=lambda: stop_soon(dialog))

    assert contents(dialog) == ["Hello"]
    assert dialog.current_leaf == question


def test_a_passing_failure_or_a_stream_that_breaks_is_tried_again_and_its_text_is_kept(
    dialog: Dialog, play: Play
) -> None:
    busy = {"error": {"code": "provider_failed", "message": "busy"}}
    play(busy, {"text": "Once upon", "drop": True}, {"text": "Once upon a time.", "usage": USAGE})
    ask_and_drive(dialog)

    assert contents(dialog) == ["Hello", "Once upon a time."]
    tries = Generation.objects.values_list("status", "attempt", "partial_text")
    assert list(tries) == [("failed", 1, ""), ("failed", 2, "Once upon"), ("finished", 3, "")]


def test_after_three_failures_the_turn_ends_with_a_clear_error(dialog: Dialog, play: Play) -> None:
    play({"error": {"code": "provider_unreachable", "message": "no route"}})
    ask_and_drive(dialog)

    last = Generation.objects.last()
    assert Generation.objects.count() == 3
    assert (last.status, last.error_code, last.error_message) == ("failed", "provider_unreachable", "no route")
    assert contents(dialog) == ["Hello"]


def test_a_refused_key_is_not_tried_again_until_a_person_does(dialog: Dialog, play: Play) -> None:
    """A failed generation has no reading."""
    play({"error": {"code": "authentication_refused", "message": "bad key"}}, {"text": "Hi.", "usage": USAGE})
    ask_and_drive(dialog)
    assert Generation.objects.get().error_code == "authentication_refused"
    assert not HealthReading.objects.exists()

    retry(dialog=dialog)
    drive_until_idle(dialog)

    assert contents(dialog) == ["Hello", "Hi."]
    assert HealthReading.objects.count() == 1


def test_waiting_for_the_next_try_can_be_stopped(dialog: Dialog, play: Play, settings: object) -> None:
    settings.DOMINDS_BACKOFF_BASE_SECONDS = settings.DOMINDS_BACKOFF_MAX_SECONDS = 60  # type: ignore[attr-defined]
    play({"error": {"code": "provider_failed"}})
    ask(dialog)

    drive_until_idle(dialog, beside=lambda: stop_soon(dialog))

    assert Generation.objects.count() == 1
    assert not dialog.answer_due


def test_an_overflow_teaches_the_true_window(dialog: Dialog, llm: LLM, play: Play) -> None:
    LLM.objects.update(context_length=None, context_length_source="")
    play({"error": {"code": "context_overflow", "context_window": 2048, "prompt_tokens": 3000}})
    ask_and_drive(dialog)

    llm.refresh_from_db()
    assert Generation.objects.get().error_code == "context_overflow"
    assert (llm.context_length, llm.context_length_source) == (2048, "refusal")


def test_an_unusable_provider_is_a_clear_error_in_the_transcript(dialog: Dialog, play: Play) -> None:
    play({"text": "Hi."})
    dialog.llm.provider.kind = "no-such-kind"
    dialog.llm.provider.save()
    ask_and_drive(dialog)

    generation = Generation.objects.get()
    assert (generation.status, generation.message) == ("failed", None)
    assert generation.error_message


def test_a_fault_of_ours_ends_the_turn_and_is_logged(
    dialog: Dialog, play: Play, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    play({"text": "Hi."})
    monkeypatch.setattr("dialogs.driver.streaming.LiveAnswer.add", lambda *_args, **_kw: 1 / 0)
    ask(dialog)

    with caplog.at_level(logging.ERROR):
        drive_until_idle(dialog)

    assert Generation.objects.get().error_code == "internal_error"
    assert "division by zero" in caplog.text


def test_messages_typed_meanwhile_are_answered_in_order(dialog: Dialog, play: Play) -> None:
    play({"match": "First", "text": "1"}, {"match": "Second", "text": "2"}, {"match": "Third", "text": "3"})
    ask(dialog, "First")
    post_message(dialog=dialog, content="Second")
    post_message(dialog=dialog, content="Third")

    drive_until_idle(dialog)

    assert contents(dialog) == ["First", "1", "Second", "2", "Third", "3"]
    assert not QueuedMessage.objects.exists()


def test_a_turn_that_a_worker_left_is_answered_once_and_its_text_kept(dialog: Dialog, play: Play) -> None:
    play({"text": "Once upon a time."})
    ask(dialog)
    left = a_generation(dialog, partial_text="Once upon")
    Dialog.objects.update(lease_token=7, lease_until=timezone.now())

    drive_until_idle(dialog)

    left.refresh_from_db()
    assert contents(dialog) == ["Hello", "Once upon a time."]
    assert (left.status, left.partial_text) == ("interrupted", "Once upon")


def test_a_dialog_that_kills_every_worker_is_given_up(dialog: Dialog, play: Play) -> None:
    requests = play({"text": "Hi."})
    ask(dialog)
    for _ in range(3):
        a_generation(dialog, status="interrupted")

    drive_until_idle(dialog)

    assert Generation.objects.last().error_code == "worker_died"
    assert requests() == []


def test_a_worker_that_lost_its_lease_writes_nothing_more(dialog: Dialog, play: Play) -> None:
    play(SLOW)
    ask(dialog)

    async def another_takes_over() -> None:
        await asyncio.sleep(0.5)
        await Dialog.objects.aupdate(lease_token=99, lease_until=timezone.now() + timedelta(minutes=1))
        await asyncio.sleep(1.5)
        await Dialog.objects.aupdate(answer_due=False, handled_seq=10**6)

    drive_until_idle(dialog, beside=another_takes_over)

    assert contents(dialog) == ["Hello"]
    assert Generation.objects.get().status == "running"


def test_text_no_database_takes_is_kept_readably(dialog: Dialog, play: Play) -> None:
    play({"text": ["a\0b", "\ud83d"]})
    ask_and_drive(dialog)

    assert Message.objects.last().content == "a␀b\ufffd"


# An answer that goes on and on is ended by itself; what came of it is kept, and it is not asked for again.


@pytest.mark.parametrize(
    "endless",
    [
        {"text": ["word "] * 300},
        {"reasoning": ["word "] * 300, "text": "Done."},
        {"text": "", "tool_calls": [a_call("ask_human", '{"question": "' + "x" * 1500)]},
    ],
    ids=["text", "thoughts", "arguments"],
)
def test_an_answer_ends_at_its_most_characters(
    dialog: Dialog, play: Play, settings: LazySettings, endless: dict[str, Any]
) -> None:
    settings.DOMINDS_MAX_ANSWER_CHARS = 1_000
    requests = play({**endless, "usage": USAGE}, {"text": "never"})
    ask_and_drive(dialog)

    generation = Generation.objects.get()
    assert (generation.status, generation.error_code) == ("failed", "answer_endless")
    assert "1,000 characters" in generation.error_message
    assert len(generation.partial_text + generation.partial_reasoning) <= 1_010
    assert len(requests()) == 1


def test_an_answer_ends_after_its_most_seconds(dialog: Dialog, play: Play, settings: LazySettings) -> None:
    settings.DOMINDS_MAX_ANSWER_SECONDS = 1
    play({"text": ["word "] * 300, "delay": 0.1, "usage": USAGE})
    ask_and_drive(dialog)

    generation = Generation.objects.get()
    assert (generation.status, generation.error_code) == ("failed", "answer_endless")
    assert "longer than 1 s" in generation.error_message
    assert generation.partial_text.startswith("word word")


# A model that ends its answer without a word is asked once more and told why; what it says then stands.


URGE = "Your answer to this was empty. Please answer it now."

DOWN = {"error": {"code": "provider_unreachable", "message": "nobody listens"}}


def test_it_is_asked_once_more(dialog: Dialog, play: Play) -> None:
    requests = play(said(10, ""), said(10, "Berth 7."))

    ask(dialog, "Which berth?")
    dialog = drive_until_idle(dialog)

    assert dialog.current_leaf is not None
    assert (dialog.current_leaf.content, len(requests())) == ("Berth 7.", 2)
    assert [one["messages"][-1]["content"] for one in requests()] == ["Which berth?", f"Which berth?\n\n{URGE}"]
    assert Generation.objects.order_by("pk").first().error_code == "empty_answer"  # type: ignore[union-attr]


def test_what_it_was_told_the_second_time_is_recorded(dialog: Dialog, play: Play) -> None:
    play(said(10, ""), said(10, "Berth 7."))

    ask(dialog, "Which berth?")
    dialog = drive_until_idle(dialog)

    first, second = (seen_by_generation(dialog, one.pk) for one in dialog.generations.order_by("pk"))
    assert first
    assert second
    assert [seen.parts[-1].text for seen in (first, second)] == ["Which berth?", f"Which berth?\n{URGE}"]


def test_the_next_message_is_sent_as_it_was_typed(dialog: Dialog, play: Play) -> None:
    requests = play(said(10, ""), said(10, "Berth 7."), said(10, "At noon."))

    for text in ("Which berth?", "When?"):
        ask(dialog, text)
        dialog = drive_until_idle(dialog)

    assert [one["content"] for one in requests()[-1]["messages"][-3:]] == ["Which berth?", "Berth 7.", "When?"]


def test_a_second_empty_answer_is_its_answer(dialog: Dialog, play: Play) -> None:
    requests = play(said(10, " \n"), said(10, ""), said(10, "Too late."))

    ask(dialog, "Which berth?")
    dialog = drive_until_idle(dialog)

    assert dialog.current_leaf is not None
    assert (dialog.current_leaf.role, dialog.current_leaf.content, len(requests())) == ("assistant", "", 2)


def test_a_try_that_failed_for_another_reason_is_not_counted(dialog: Dialog, play: Play) -> None:
    requests = play(DOWN, said(10, ""), said(10, "Berth 7."))

    ask(dialog, "Which berth?")
    dialog = drive_until_idle(dialog)

    assert dialog.current_leaf is not None
    assert (dialog.current_leaf.content, len(requests())) == ("Berth 7.", 3)
