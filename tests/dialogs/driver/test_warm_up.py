"""Before a context is full the worker of compactions is told to load its models."""

from __future__ import annotations

import pytest

from dialogs.driver import generate
from dialogs.models import Dialog
from tests.dialogs.driver.conftest import Play, ask_and_drive, said

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was asked of the worker of compactions."""
    asked: list[str] = []
    monkeypatch.setattr(generate, "queue_warm_up", lambda: asked.append("warm up"))
    return asked


@pytest.mark.parametrize(
    ("prompt", "compaction", "is_told"),
    [(498, "automatic", False), (499, "automatic", True), (499, "off", False), (None, "automatic", False)],
)
def test_an_answer_that_ends_near_the_threshold_says_so(
    dialog: Dialog, play: Play, told: list[str], prompt: int | None, compaction: str, is_told: bool
) -> None:
    """Of 1,000 tokens 900 may be a prompt: compaction begins at 720. Seven tenths are 504, five of them the answer."""
    dialog.llm.context_length, dialog.llm.compaction = 1000, compaction
    dialog.llm.save()
    play(said(prompt))

    ask_and_drive(dialog)

    assert bool(told) is is_told
