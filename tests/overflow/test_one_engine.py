"""Live dialogs and `compact_messages` are compacted by one engine: of one history both keep the same."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import User

from benchmarks.live_fidelity import LivePath
from dialogs.models import LLM, Dialog, Message
from dialogs.services.api_keys import create_key
from tests.dialogs.api.conftest import assistant, user
from tests.overflow.talk import SYSTEM, Talk
from tests.standins.compatible import answer_to, text_of

pytestmark = pytest.mark.django_db
TALK = Talk(8_192, turns=40)


def history() -> list[dict[str, Any]]:
    said = [(TALK.turn(number), answer_to(TALK.turn(number), sentences=6)) for number in range(1, TALK.turns)]
    turns = [message for asked, answered in said for message in (user(asked), assistant(answered))]
    return [{"role": "system", "content": SYSTEM}, *turns, user(TALK.turn(TALK.turns))]


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
