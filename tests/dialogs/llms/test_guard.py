"""Who is guarded and with which limit."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone
from django.utils.translation import override

from dialogs.compaction.work import config_for
from dialogs.llms.guard import LMSTUDIO_CHAIN, active_guard, cuts_silently, guard_of
from dialogs.llms.words import kept_by_llm, kept_in_dialog, rounded, traced
from dialogs.models import LLM, Agent, Dialog, LlmBounds, Provider
from health.configured import ONLY
from health.models import CompactionRun, ContextSettings

pytestmark = pytest.mark.django_db


def lmstudio(dialog: Dialog, *, window: int | None = 10_000, **agent: Any) -> Dialog:
    dialog.llm.provider.kind = "lmstudio"
    dialog.llm.context_length = window
    for name, value in agent.items():
        setattr(dialog.agent, name, value)
    return dialog


@pytest.mark.parametrize("asked_for", [None, 8192])
@pytest.mark.parametrize("kind", ["openai", "ollama", "llamacpp", "anthropic", "scripted"])
def test_every_dialog_is_guarded_whose_window_is_known(dialog: Dialog, kind: str, asked_for: int | None) -> None:
    """A long answer that is asked for takes no more than a tenth from the history."""
    dialog.llm.provider.kind, dialog.llm.context_length, dialog.llm.compaction = kind, 8192, "automatic"
    dialog.agent.max_output_tokens = asked_for

    guard = active_guard(dialog)

    assert guard is not None
    assert (guard.window, guard.limit, guard.answer, guard.begins_at) == (8192, 7373, 819, 5898)
    assert [(term.what, term.tokens) for term in guard.trace] == [("window", 8192), ("room", 7373)]


@pytest.mark.parametrize("kind", ["openai", "lmstudio"])
def test_without_a_window_nothing_is_guarded_and_lmstudio_is_never_asked(dialog: Dialog, kind: str) -> None:
    dialog.llm.provider.kind, dialog.llm.context_length = kind, None

    assert guard_of(dialog) is None


@pytest.mark.parametrize("who", ["llm", "agent", "dialog"])
def test_whoever_switches_compaction_off_wins(dialog: Dialog, who: str) -> None:
    dialog.llm.compaction = "automatic"
    whose = {"llm": dialog.llm, "agent": dialog.agent, "dialog": dialog}[who]
    whose.compaction = "off"

    guard = guard_of(dialog)

    assert guard is not None
    assert guard.off
    assert active_guard(dialog) is None


def test_what_was_refused_narrows_a_known_window_and_guards_an_unknown_one(dialog: Dialog) -> None:
    for window in (16_000, None):
        dialog.llm.context_length = window
        dialog.llm.bounds = LlmBounds(llm=dialog.llm, accepted=7_000, refused=9_000, refused_at=timezone.now())

        guard = guard_of(dialog)

        assert guard is not None
        assert (guard.window, guard.limit) == (window, 7_200)


def test_the_servers_that_cut_without_a_word_are_known(dialog: Dialog) -> None:
    llm = dialog.llm
    assert not cuts_silently(llm)

    llm.provider.kind, llm.provider.base_url = "openai", "http://127.0.0.1:11434/v1"
    assert cuts_silently(llm)

    llm.provider.base_url = "http://127.0.0.1:8000/v1"
    llm.bounds = LlmBounds(llm=llm, cut_sent=9000, cut_read=8000, cut_at=timezone.now())
    assert cuts_silently(llm)


@pytest.mark.parametrize("threshold", [None, 0.5, 0.9])
def test_lmstudio_is_guarded_by_its_loaded_window_and_settings_do_not_move_its_marks(
    dialog: Dialog, threshold: float | None
) -> None:
    """What an answer may take is its reserve."""
    if threshold:
        values = f"context_config:\n  warning_threshold: {threshold}\n"
        ContextSettings.objects.create(pk=ONLY, values=values)

    guard, short = guard_of(lmstudio(dialog)), guard_of(lmstudio(dialog, max_output_tokens=500))

    assert guard is not None
    assert short is not None
    assert (guard.limit, guard.reserve, guard.chain, short.reserve) == (10_000, 1000, LMSTUDIO_CHAIN, 500)
    run = CompactionRun(dialog=dialog, trigger=CompactionRun.Trigger.PRE_REQUEST)
    assert (guard.config.warning_threshold, config_for(run).warning_threshold) == (0.8, 0.8)


@pytest.mark.parametrize("who", ["staff", "agent"])
def test_where_staff_or_an_agent_want_no_model_asked_lmstudio_is_compacted_as_all_others_are(
    dialog: Dialog, who: str
) -> None:
    if who == "staff":
        ContextSettings.objects.create(pk=ONLY, values="context_config:\n  lm_studio: no_model\n")
    else:
        dialog.agent.own_settings = '{"lm_studio": "no_model"}'

    guard = guard_of(lmstudio(dialog))

    assert guard is not None
    assert guard.chain[:2] == ("trim_payloads", "select_passages")
    assert "prune_with_agent" not in guard.chain
    assert guard.config.warning_threshold == 0.8


def test_a_window_too_small_to_work_with_is_refused_with_the_reason(dialog: Dialog) -> None:
    guard = guard_of(lmstudio(dialog, window=1100))

    assert guard is not None
    assert "load the model with a larger context" in str(guard.refused)


def test_an_agents_limit_counts_under_the_window_of_lmstudio(dialog: Dialog) -> None:
    guard = guard_of(lmstudio(dialog, context_budget=True, context_limit=4000))

    assert guard is not None
    assert (guard.limit, guard.reserve) == (4000, 0)
    assert guard.traced()[0]["what"] == "agent"


@pytest.mark.parametrize(
    ("fields", "llm_type", "limit", "trace"),
    [
        ({"context_budget": True, "context_limit": 4000}, "", 4000, ["agent"]),
        # With a limit but no number it has the default.
        ({"context_budget": True}, "", 5000, ["default"]),
        # The limit of the LLM's type counts without one of the agent's.
        ({}, "cloud_grok", 8000, ["LLM"]),
        # One of first priority may use a fifth more.
        ({"context_budget": True, "context_limit": 5000, "is_p1": True}, "", 6000, ["agent", "P1 agent"]),
    ],
)
def test_an_agent_with_a_limit_is_guarded_on_any_provider(
    dialog: Dialog, fields: dict[str, Any], llm_type: str, limit: int, trace: list[str]
) -> None:
    """Payloads are trimmed first, then passages are chosen."""
    for name, value in fields.items():
        setattr(dialog.agent, name, value)
    dialog.llm.limit_type, dialog.llm.context_length = llm_type, 100_000

    guard = guard_of(dialog)

    assert guard is not None
    assert (guard.limit, [term.what for term in guard.trace]) == (limit, trace)
    assert guard.chain[:3] == ("trim_payloads", "select_passages", "summarize_old")


def test_staff_may_let_the_configured_chain_run_first(dialog: Dialog) -> None:
    ContextSettings.objects.create(pk=ONLY, values="context_config:\n  how: chain\n")
    dialog.agent.context_budget = True
    dialog.llm.context_length = 100_000

    guard = guard_of(dialog)

    assert guard is not None
    assert (guard.chain[1], guard.chain[-1]) == ("summarize_old", "select_passages")
    assert guard.chain[1:-1] == guard.config.chain_order


# How a model is kept from overflowing, in one line.


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
