"""Live dialogs, handovers, `manage.py compact` and `compact_messages`: one engine, of one history all keep the same."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command

from benchmarks.live_fidelity import LivePath
from dialogs.api.writes.api_keys import create_key
from dialogs.context.carry_over import ENDING, OPENING, SHARE, handover_for
from dialogs.llms.counter import counter_of
from dialogs.llms.guard import by_limit
from dialogs.models import LLM, Dialog, Message
from dialogs.models.message import MessageOrigin
from dialogs.turns.reads.turns import dialog_to_drive
from health.services import compact_messages
from health.tokens.messages import overhead_tokens
from tests.dialogs.api.conftest import assistant, user
from tests.overflow.talk import RULES, SYSTEM, Talk, task
from tests.standins.compatible import answer_to, text_of

pytestmark = pytest.mark.django_db
TALK = Talk(8_192, turns=40)
KEY = "Then the pilot put the boathouse key under the mat."


def history() -> list[dict[str, Any]]:
    said = [(TALK.turn(number), answer_to(TALK.turn(number), sentences=6)) for number in range(1, TALK.turns)]
    turns = [message for asked, answered in said for message in (user(asked), assistant(answered))]
    return [{"role": "system", "content": SYSTEM}, *turns, user(TALK.turn(TALK.turns))]


def with_a_key_put_away(said: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without the newest message, and near its beginning a fact that nothing else is said of."""
    return [*said[:9], user("One more thing."), assistant(KEY), *said[9:-1]]


def kept(messages: list[dict[str, Any]]) -> set[str]:
    """The sentences of the history that stand in what is sent."""
    sent = "\n".join(map(text_of, messages))
    said = {f"{sentence}." for message in history() for sentence in text_of(message).rstrip(".").split(". ")}
    return {sentence for sentence in said if sentence in sent}


def start_counting_at(number: int, dialog: Dialog) -> None:
    """Let messages have larger numbers than this (SQLite goes on from the largest that it ever had)."""
    course = dialog.courses.get()
    Message.objects.create(pk=number, dialog=dialog, course=course, seq=1, turn=1, role="user").delete()


@pytest.fixture
def live(alice: User, llm: LLM) -> LivePath:
    llm.context_length, llm.optimal_max_tokens = 1_000_000, None
    llm.save()
    return LivePath(create_key(owner=alice, name="laptop")[0], llm)


@pytest.mark.parametrize("stored_before", [1, 140_000])
@pytest.mark.parametrize("limit", [2_000, 4_000])
def test_the_live_path_and_the_library_keep_the_same(
    live: LivePath, dialog: Dialog, limit: int, stored_before: int
) -> None:
    """However many messages were stored before: their numbers stand in the ledger."""
    start_counting_at(stored_before, dialog)
    case = SimpleNamespace(messages=history())

    (sent, failed), (found, _failed) = live.compacted(case, limit), live.like_the_library(case, limit)

    assert not failed
    assert kept(sent) == kept(found) != kept(case.messages)


@pytest.mark.parametrize("limit", [1_000, 2_000])
def test_a_live_dialog_keeps_what_its_newest_message_asks_for(live: LivePath, limit: int) -> None:
    messages = [*with_a_key_put_away(history()), user("Where is the boathouse key?")]

    sent, failed = live.compacted(SimpleNamespace(messages=messages), limit)

    assert not failed
    assert KEY in "\n".join(map(text_of, sent))


@pytest.mark.parametrize("limit", [1_000, 3_000])
def test_the_command_and_the_library_choose_the_same(tmp_path: Path, limit: int) -> None:
    (file := tmp_path / "chat.json").write_text(json.dumps(history()))
    (out := tmp_path / "out.json").write_text("")

    call_command("compact", str(file), "--limit", str(limit), "--embedder", "static", "--out", str(out))

    found = compact_messages(history(), limit_tokens=limit, embedder="static").messages
    assert json.loads(out.read_text()) == list(found)
    assert kept(list(found)) != kept(history())


@pytest.mark.parametrize("window", [8_000, 12_000, 20_000])
def test_a_handover_keeps_what_the_library_keeps_in_the_same_room(live: LivePath, window: int) -> None:
    said = [*history(), assistant("Then the plan holds.")]
    dialog = live.dialog_of(said)
    llm = dialog.llm
    llm.context_length, llm.model_id = window, "gpt-4o"  # counted exactly on both sides
    llm.save()

    handover = handover_for(dialog.pk)

    assert handover is not None
    counter = counter_of(llm)
    room = int(SHARE * by_limit(dialog_to_drive(dialog.pk)).room) - counter.count([f"{OPENING}\n{ENDING}"])[0]
    # The new course tells its instructions itself.
    rows = dialog.messages.order_by("seq")
    answered = [{**one, "id": str(row.pk)} for one, row in zip(said[1:], rows, strict=True)]
    limit = room + overhead_tokens("gpt-4o")
    found = compact_messages(answered, limit_tokens=limit, model="gpt-4o", embedder="none")
    told, theirs = kept([{"content": handover.text}]), kept(list(found.messages))
    assert stated(handover.text) == (True, True, True)
    assert told == theirs


@pytest.mark.parametrize(("asked", "is_told"), [("Where is the boathouse key?", True), ("Draw up the plan.", False)])
def test_a_handover_holds_what_the_message_asks_for_that_waits(live: LivePath, asked: str, is_told: bool) -> None:
    live.llm.context_length = 8_000
    live.llm.save()

    dialog = live.dialog_of([*with_a_key_put_away(history()), user(asked)])
    dialog.messages.filter(role="user").update(origin=MessageOrigin.TYPED)  # as in a browser

    handover = handover_for(dialog.pk)

    assert handover is not None
    assert asked not in handover.text
    assert (KEY in handover.text) == is_told


def stated(text: str) -> tuple[bool, ...]:
    """Which of the task and the rules stand."""
    return tuple(one in text for one in (task(TALK.ship), *RULES.values()))
