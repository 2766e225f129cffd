"""Who is guarded and with which limit."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from dialogs.compaction.work import config_for
from dialogs.llms.guard import LMSTUDIO_CHAIN, active_guard, cuts_silently, guard_of
from dialogs.models import Dialog, LlmBounds
from health.configured import ONLY
from health.models import CompactionRun, ContextSettings

pytestmark = pytest.mark.django_db


def lmstudio(dialog: Dialog, *, window: int | None = 10_000, **agent: Any) -> Dialog:
    dialog.llm.provider.kind = "lmstudio"
    dialog.llm.context_length = window
    for name, value in agent.items():
        setattr(dialog.agent, name, value)
    return dialog


@pytest.mark.parametrize("kind", ["openai", "ollama", "llamacpp", "anthropic", "scripted"])
def test_every_dialog_is_guarded_whose_window_is_known(dialog: Dialog, kind: str) -> None:
    dialog.llm.provider.kind, dialog.llm.context_length, dialog.llm.compaction = kind, 8192, "automatic"

    guard = active_guard(dialog)

    assert guard is not None
    assert (guard.window, guard.limit, guard.answer, guard.begins_at) == (8192, 7373, 819, 5898)
    assert [(term.what, term.tokens) for term in guard.trace] == [("window", 8192), ("room", 7373)]


def test_without_a_window_nothing_is_guarded(dialog: Dialog) -> None:
    dialog.llm.context_length = None

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


def test_a_long_answer_that_is_asked_for_takes_no_more_than_a_tenth_from_the_history(dialog: Dialog) -> None:
    dialog.llm.context_length, dialog.agent.max_output_tokens = 8192, 8192

    guard = guard_of(dialog)

    assert guard is not None
    assert guard.limit == 7373


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


def test_lmstudio_is_guarded_by_its_loaded_window(dialog: Dialog) -> None:
    guard = guard_of(lmstudio(dialog))

    assert guard is not None
    assert (guard.limit, guard.reserve, guard.chain) == (10_000, 1000, LMSTUDIO_CHAIN)
    assert guard.config.warning_threshold == 0.8


def test_where_staff_want_no_model_asked_lmstudio_is_compacted_as_all_others_are(dialog: Dialog) -> None:
    ContextSettings.objects.create(pk=ONLY, values="context_config:\n  lm_studio: no_model\n")

    guard = guard_of(lmstudio(dialog))

    assert guard is not None
    assert guard.chain[:2] == ("trim_payloads", "select_passages")
    assert "prune_with_agent" not in guard.chain
    assert guard.config.warning_threshold == 0.8


def test_an_agent_may_have_no_model_asked_for_itself_alone(dialog: Dialog) -> None:
    guard = guard_of(lmstudio(dialog, own_settings='{"lm_studio": "no_model"}'))

    assert guard is not None
    assert "prune_with_agent" not in guard.chain


def test_settings_do_not_move_the_marks_of_lmstudio(dialog: Dialog) -> None:
    ContextSettings.objects.create(pk=ONLY, values="context_config:\n  warning_threshold: 0.5\n")

    guard = guard_of(lmstudio(dialog))

    assert guard is not None
    assert guard.config.warning_threshold == 0.8


def test_settings_do_not_move_where_a_run_of_lmstudio_ends(dialog: Dialog) -> None:
    ContextSettings.objects.create(pk=ONLY, values="context_config:\n  warning_threshold: 0.9\n")

    config = config_for(CompactionRun(dialog=lmstudio(dialog), trigger=CompactionRun.Trigger.PRE_REQUEST))

    assert config.warning_threshold == 0.8


def test_what_an_answer_may_take_is_its_reserve(dialog: Dialog) -> None:
    guard = guard_of(lmstudio(dialog, max_output_tokens=500))

    assert guard is not None
    assert guard.reserve == 500


def test_lmstudio_without_a_window_has_no_guard_as_it_is_never_asked(dialog: Dialog) -> None:
    assert guard_of(lmstudio(dialog, window=None)) is None


def test_a_window_too_small_to_work_with_is_refused_with_the_reason(dialog: Dialog) -> None:
    guard = guard_of(lmstudio(dialog, window=1100))

    assert guard is not None
    assert "load the model with a larger context" in str(guard.refused)


def test_an_agents_limit_counts_under_the_window_of_lmstudio(dialog: Dialog) -> None:
    guard = guard_of(lmstudio(dialog, context_budget=True, context_limit=4000))

    assert guard is not None
    assert (guard.limit, guard.reserve) == (4000, 0)
    assert guard.traced()[0]["what"] == "agent"


def test_an_agent_with_a_limit_is_guarded_on_any_provider(dialog: Dialog) -> None:
    dialog.agent.context_budget, dialog.agent.context_limit = True, 4000
    dialog.llm.context_length = 100_000

    guard = guard_of(dialog)

    assert guard is not None
    assert guard.limit == 4000


def test_an_agent_with_a_limit_but_no_number_has_the_default(dialog: Dialog) -> None:
    dialog.agent.context_budget = True
    dialog.llm.context_length = 100_000

    guard = guard_of(dialog)

    assert guard is not None
    assert guard.limit == 5000


def test_the_limit_of_the_llms_type_counts_without_one_of_the_agent(dialog: Dialog) -> None:
    dialog.llm.limit_type = "cloud_grok"
    dialog.llm.context_length = 100_000

    guard = guard_of(dialog)

    assert guard is not None
    assert guard.limit == 8000


def test_a_p1_agent_may_use_a_fifth_more(dialog: Dialog) -> None:
    dialog.agent.context_budget, dialog.agent.context_limit, dialog.agent.is_p1 = True, 5000, True
    dialog.llm.context_length = 100_000

    guard = guard_of(dialog)

    assert guard is not None
    assert guard.limit == 6000
    assert [term.what for term in guard.trace] == ["agent", "P1 agent"]


def test_payloads_are_trimmed_first_then_passages_are_chosen(dialog: Dialog) -> None:
    dialog.agent.context_budget = True
    dialog.llm.context_length = 100_000

    guard = guard_of(dialog)

    assert guard is not None
    assert guard.chain[:3] == ("trim_payloads", "select_passages", "summarize_old")


def test_staff_may_let_the_configured_chain_run_first(dialog: Dialog) -> None:
    ContextSettings.objects.create(pk=ONLY, values="context_config:\n  how: chain\n")
    dialog.agent.context_budget = True
    dialog.llm.context_length = 100_000

    guard = guard_of(dialog)

    assert guard is not None
    assert (guard.chain[1], guard.chain[-1]) == ("summarize_old", "select_passages")
    assert guard.chain[1:-1] == guard.config.chain_order
