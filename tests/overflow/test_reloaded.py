"""LM Studio loads a model anew, with a smaller window, while somebody speaks with it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.utils import timezone

from dialogs.models import LLM, Agent, Dialog, LlmBounds, Provider
from dialogs.services.dialogs import create_dialog
from tests.dialogs.driver.conftest import ask, drive_until_idle
from tests.overflow.talk import Talk, prose
from tests.standins.lmstudio import LMStudioStandin
from tests.standins.serving import serving

WINDOW = 8_192
TALK = Talk(WINDOW, turns=20, windows=1.0)
ANSWER = prose(3, TALK.chars)


@pytest.fixture
def studio(transactional_db: None, agent: Agent, settings: LazySettings) -> Iterator[LMStudioStandin]:
    settings.DOMINDS_COMPACTION_WAIT_SECONDS = 0.0
    standin = LMStudioStandin(context=WINDOW, answer=ANSWER)
    with serving(standin.app()) as url:
        Provider.objects.update(kind="lmstudio", base_url=url)
        LLM.objects.update(model_id=standin.model, context_length=None, optimal_max_tokens=None, compaction="automatic")
        yield standin


def test_what_it_refuses_then_is_compacted_for_the_window_that_it_tells(studio: LMStudioStandin, alice: User) -> None:
    dialog = create_dialog(owner=alice, agent=Agent.objects.select_related("llm").get())
    for number in range(1, 15):
        ask(dialog, TALK.turn(number))
        dialog = drive_until_idle(dialog)
    studio.context = WINDOW // 2

    ask(dialog, "Which berth is free?")
    dialog = drive_until_idle(dialog)

    assert studio.refused == 1
    assert dialog.courses.count() == 1
    assert_answered(dialog)
    # The number in its refusal is not believed: its own lists tell the window, at least once a minute.
    assert LlmBounds.objects.get().known.words == ""
    LLM.objects.update(limits_read_at=timezone.now() - timedelta(minutes=2))
    ask(dialog, "And which tomorrow?")
    assert_answered(drive_until_idle(dialog))
    assert LLM.objects.get().detected_context_length == WINDOW // 2
    assert studio.refused == 1


def assert_answered(dialog: Dialog) -> None:
    assert dialog.current_leaf is not None
    assert dialog.current_leaf.content == ANSWER
