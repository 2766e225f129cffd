"""How a model is kept from overflowing, in one line."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone
from django.utils.translation import override

from dialogs.llms.guard import guard_of
from dialogs.llms.words import kept_by_llm, kept_in_dialog, rounded, traced
from dialogs.models import LLM, Agent, Dialog, LlmBounds, Provider

pytestmark = pytest.mark.django_db
OPEN = {"compaction": "automatic", "context_length": 8192, "context_length_source": "server"}


def kept(dialog: Dialog, *, kind: str = "openai", agent: dict[str, object] | None = None, **llm: object) -> str:
    Provider.objects.update(kind=kind, base_url="http://127.0.0.1:8000/v1")
    LLM.objects.update(**(OPEN | llm))
    Agent.objects.update(**(agent or {}))
    return kept_in_dialog(Dialog.objects.get(pk=dialog.pk))


def test_a_known_window_names_where_it_begins_to_be_compacted(dialog: Dialog) -> None:
    said = "window 8,192 from the server, 819 kept for the answer; compaction from ≈5,900 tokens on"

    assert kept(dialog) == said
    assert kept_by_llm(LLM.objects.get()) == said


def test_where_a_limit_comes_from_is_said_in_chinese_too(dialog: Dialog) -> None:
    kept(dialog)
    guard = guard_of(Dialog.objects.get(pk=dialog.pk))
    assert guard

    with override("zh-hans"):
        assert traced(guard.trace) == "窗口 8,192 → 提示可用的空间 7,373"


UNKNOWN = {"context_length": None, "context_length_source": ""}
LIMITED = {"context_budget": True, "context_limit": 5000}
LOADED = {"kind": "lmstudio", "detected_context_length": 8192}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (UNKNOWN, "its window is unknown: it is learned from the first refusal; until then nothing is compacted"),
        (
            {"context_length_source": "refusal"},
            "window 8,192 learned from a refusal, 819 kept for the answer; compaction from ≈5,900 tokens on",
        ),
        ({"agent": LIMITED}, "a limit of 5,000 tokens is set, window 8,192; compaction from ≈4,000 tokens on"),
        (
            {"kind": "lmstudio"},
            "not loaded: the window is read from LM Studio before each request, and nothing is sent without it",
        ),
        (LOADED, "window 8,192 as loaded in LM Studio, 819 kept for the answer; compaction from ≈5,700 tokens on"),
        (
            LOADED | {"compaction": "off"},
            "window 8,192 as loaded in LM Studio, 819 kept for the answer; compaction is off for this LLM, "
            "so what does not fit is refused here, as the server would cut it without a word",
        ),
    ],
    ids=["unknown", "named by a refusal", "a limit below it", "not loaded", "loaded", "off where the server cuts"],
)
def test_each_way_to_know_a_window_has_its_words(dialog: Dialog, fields: dict[str, Any], words: str) -> None:
    assert kept(dialog, **fields) == words


def test_what_a_refusal_taught_is_used_before_a_window_is_known(dialog: Dialog) -> None:
    LlmBounds.objects.create(llm=dialog.llm, refused=10_000, refused_at=timezone.now(), accepted=8_000)

    said = kept(dialog, context_length=None, context_length_source="")

    assert said.startswith("its window is unknown: by what it read and refused, ≈8,")


def test_off_says_for_whom_and_what_happens_then(dialog: Dialog) -> None:
    off = kept(dialog, compaction="off")

    assert off.endswith("compaction is off for this LLM, and the server refuses what does not fit")
    assert "off for this agent" in kept(dialog, agent={"compaction": "off"})


@pytest.mark.parametrize(
    ("tokens", "said"), [(7, "7"), (84, "84"), (812, "810"), (5898, "5,900"), (52_421, "52,400"), (123_456, "123,000")]
)
def test_estimates_are_rounded_as_people_say_them(tokens: int, said: str) -> None:
    assert rounded(tokens) == said
