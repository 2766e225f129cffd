"""The budget: slices that add up, the limit with its terms, and what is said where nobody set one."""

from __future__ import annotations

import pytest

from dialogs.agents.writes import add_reminder, write_taskdoc
from dialogs.compaction.reads.budget import Budget
from dialogs.compaction.reads.budget import budget as budget_of
from dialogs.context.estimate import RequestEstimate, estimate, estimate_of, offered_tools, present_context
from dialogs.context.writes import learn_from_usage
from dialogs.llms.counter import calibration_of, counter_of
from dialogs.models import LLM, Dialog, Message
from dialogs.models.message import MessageOrigin, Role
from dialogs.transcript.writes.dialog_row import add_message
from dialogs.turns.reads.turns import dialog_to_drive
from health.limits import output_reserve
from health.tokens.calibration import RawEstimate
from health.tokens.counters import counter_for
from health.tokens.messages import tools_tokens
from tests.dialogs.compacting_builders import a_history, estimated, guard, long_text
from tests.dialogs.compaction_runs import an_applied_run


@pytest.fixture
def history(dialog: Dialog) -> list[Message]:
    return a_history(dialog, pairs=6)


def budget(dialog: Dialog) -> Budget:
    return budget_of(dialog_to_drive(dialog.pk))


def parts(found: Budget) -> dict[str, int]:
    return {slice_.name: slice_.tokens for slice_ in found.slices}


def test_the_slices_add_up_to_the_limit(dialog: Dialog, history: list[Message]) -> None:
    guard(dialog, limit=5000)
    write_taskdoc(dialog=dialog, content="Build the thing.")
    add_reminder(dialog=dialog, content="The key is under the mat.", author="user")

    found = budget(dialog)

    assert sum(parts(found).values()) == found.limit == 5000
    assert found.used == estimated(dialog)
    assert all(parts(found)[name] > 0 for name in ("instructions", "tools", "taskdoc", "reminders", "messages", "free"))
    assert found.slices[-1].start + found.slices[-1].width == pytest.approx(1)
    assert (found.is_guarded, found.over) == (True, 0)


def test_a_summary_is_told_apart_from_messages(dialog: Dialog, history: list[Message]) -> None:
    before = parts(budget(dialog))
    summary = {"content": "A summary of it.", "kind": "summary", "covers": [one.pk for one in history[:10]]}
    an_applied_run(dialog, view=[summary, *({"message": one.pk} for one in history[10:])])

    after = parts(budget(dialog))

    assert before["summaries"] == 0 < after["summaries"]
    assert after["messages"] < before["messages"]


def test_the_limit_is_traced_term_by_term(dialog: Dialog) -> None:
    guard(dialog, limit=2000)

    found = budget(dialog)

    assert [(term.what, term.tokens) for term in found.trace] == [("agent", 2000), ("floor", 3500)]
    assert found.limit == 3500


def test_where_compaction_is_off_the_room_of_the_window_is_shown(dialog: Dialog, llm: LLM) -> None:
    LLM.objects.update(context_length=8000)

    found = budget(dialog)

    assert (found.is_guarded, found.limit, found.reserve) == (False, 8000 - output_reserve(8000), 0)
    assert [(term.what, term.tokens) for term in found.trace] == [("window", 8000), ("room", 7200)]
    assert sum(parts(found).values()) == 7200


def test_without_a_window_nothing_is_free(dialog: Dialog, llm: LLM, history: list[Message]) -> None:
    LLM.objects.update(context_length=None)

    found = budget(dialog)

    assert (found.limit, found.reserve, found.free, found.over) == (None, 0, 0, 0)
    assert sum(parts(found).values()) == found.used > 0


def test_what_was_learned_of_an_llm_is_told(dialog: Dialog, llm: LLM) -> None:
    assert budget(dialog).learned is None

    for _report in range(3):
        learn_from_usage(llm=llm, estimate=RequestEstimate(tokens=1000, raw=RawEstimate(text=1000)), reported=1200)

    learned = budget(dialog).learned
    assert learned is not None
    assert len(learned.samples) == 3
    assert learned.trusted.ratio == pytest.approx(calibration_of(llm).ratio)
    assert learned.error_percent > 0


def test_of_a_server_that_leaves_tools_out_a_long_message_does_not_look_short(dialog: Dialog, llm: LLM) -> None:
    a_history(dialog, pairs=2)
    plain = parts(budget(dialog))
    text = sum(plain.values()) - plain["tools"] - plain["free"]
    for grown in (text, 2 * text, 4 * text):
        raw = RawEstimate(text=grown, tools=plain["tools"])
        learn_from_usage(llm=llm, estimate=RequestEstimate(tokens=grown + raw.tools, raw=raw), reported=grown)
    leaf, content = dialog.current_leaf, long_text(7, 300)
    add_message(dialog, role=Role.USER, origin=MessageOrigin.TYPED, content=content, parent=leaf)
    dialog.save()

    found = budget(dialog)

    assert found.learned is not None
    assert found.learned.is_trusted
    assert found.learned.leaves_tools_out
    assert parts(found)["tools"] < 10
    assert parts(found)["messages"] > sum(counter_for(llm.model_id).count([content]))


def test_what_is_predicted_can_be_taken_back_to_what_was_counted(dialog: Dialog, llm: LLM) -> None:
    a_history(dialog, pairs=4)
    tools = offered_tools(dialog)
    plain = RawEstimate(text=3000, tools=1000)
    for _report in range(3):
        learn_from_usage(llm=llm, estimate=RequestEstimate(tokens=4000, raw=plain), reported=4600)
    counter, context = counter_of(llm), present_context(dialog_to_drive(dialog.pk))

    told = estimate_of(estimate(context, tools, counter), llm, tools, counter)

    assert told.raw.tools == tools_tokens(llm.model_id, tools)
    assert told.tokens == pytest.approx(1.15 * (told.raw.text + told.raw.tools), rel=0.01)
