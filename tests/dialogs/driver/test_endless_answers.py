"""An answer that goes on and on is ended by itself; what came of it is kept, and it is not asked for again."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import LazySettings

from dialogs.models import Dialog, Generation
from tests.dialogs.driver.conftest import USAGE, Play, a_call, ask_and_drive

pytestmark = pytest.mark.django_db(transaction=True)


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
