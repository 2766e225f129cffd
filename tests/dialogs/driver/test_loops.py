"""When the driver looks for circles, and what it does when the agent goes round in one."""

from __future__ import annotations

from typing import Any

import pytest

from dialogs.agents.tools.base import DialogTool, schema
from dialogs.compaction.work import perform
from dialogs.compaction.writes.manual_compaction import reset
from dialogs.driver import run_tools
from dialogs.models import Dialog, Generation, Message
from dialogs.models.message import MessageOrigin
from dialogs.turns.reads.events import loop_notice
from dialogs.turns.writes.autonomous import start_run
from dialogs.turns.writes.messages import go_on
from health.compaction.config import AtMilestone, ContextConfig
from health.compaction.terms.configuration import dump
from health.models import CompactionRun, ContextEvent, ContextSettings
from tests.dialogs.compacting_builders import guard, long_text
from tests.dialogs.driver.conftest import Play, ask_and_drive, calling, drive_until_idle, said

pytestmark = pytest.mark.django_db(transaction=True)
READING = calling(10, "read_plan")


@pytest.fixture(autouse=True)
def plan(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the tool `read_plan` answers."""
    answer = ["Be good."]
    tool = DialogTool(name="read_plan", description="", parameters=schema(), perform=lambda _row, _given: answer[0])
    monkeypatch.setattr(run_tools, "tools_for", lambda _dialog: (tool,))
    return answer


def nearly_looked_at(dialog: Dialog, calls_left: int) -> None:
    """So many more calls, and it is looked whether the agent goes round in circles."""
    Dialog.objects.filter(pk=dialog.pk).update(unchecked_calls=20 - calls_left)


def loops() -> list[dict[str, Any]]:
    return [event.facts for event in ContextEvent.objects.filter(code="LOOP_DETECTED").order_by("id")]


def test_after_twenty_calls_it_is_looked_and_not_before(dialog: Dialog, play: Play) -> None:
    play(READING, READING, READING, said(10))
    nearly_looked_at(dialog, 5)

    ask_and_drive(dialog)
    assert (loops(), dialog.unchecked_calls) == ([], 19)

    play(READING, READING, READING, said(10))
    nearly_looked_at(dialog, 3)
    ask_and_drive(dialog, "Again")
    assert [one["seen"][0]["count"] for one in loops()] == [3]


def test_a_turn_for_a_person_goes_on_and_the_notice_is_there(dialog: Dialog, play: Play) -> None:
    play(READING, READING, READING, said(10, "Here it is."))
    nearly_looked_at(dialog, 3)

    ask_and_drive(dialog)

    assert dialog.current_leaf is not None
    assert dialog.current_leaf.content == "Here it is."
    notice = loop_notice(dialog)
    assert notice is not None
    assert notice.seen == ("read_plan was called 3 times with the same arguments and the same result.",)


def test_an_agent_on_its_own_rests_until_it_may_go_on(dialog: Dialog, play: Play) -> None:
    play(READING)
    nearly_looked_at(dialog, 3)
    start_run(dialog=dialog, goal="Read", max_generations=5)

    drive_until_idle(dialog)
    assert (dialog.paused_by, Generation.objects.count(), len(loops())) == ("loop", 3, 1)

    play(said(10))
    go_on(dialog=dialog)
    drive_until_idle(dialog)
    assert Message.objects.filter(origin=MessageOrigin.PUSH).count() == 3
    assert (Generation.objects.count(), len(loops())) == (5, 1)


def test_a_fresh_start_out_of_a_circle_lets_the_agent_go_on(dialog: Dialog, play: Play) -> None:
    guard(dialog)
    play(READING)
    nearly_looked_at(dialog, 3)
    start_run(dialog=dialog, goal="Read", max_generations=4)
    drive_until_idle(dialog)

    play(said(10))
    perform(reset(dialog=dialog, by=dialog.owner).pk, embedder="static")
    drive_until_idle(dialog)

    assert CompactionRun.objects.get().status == "applied"
    assert (Generation.objects.count(), loop_notice(dialog)) == (4, None)


def test_an_agent_without_tools_is_looked_at_too(dialog: Dialog, play: Play) -> None:
    play(said(10, long_text(1)))
    nearly_looked_at(dialog, 3)
    start_run(dialog=dialog, goal="Think", max_generations=9)

    drive_until_idle(dialog)

    assert [one["seen"][0]["kind"] for one in loops()] == ["similar_answers"]
    assert (dialog.paused_by, Generation.objects.count()) == ("loop", 3)


def over_and_over(dialog: Dialog, play: Play, plan: list[str], wanted: AtMilestone) -> None:
    """The same plan is read twice; both together are more than the limit."""
    ContextSettings.objects.update_or_create(pk=1, defaults={"values": dump(ContextConfig(on_over_hits=wanted))})
    guard(dialog)
    plan[0] = long_text(1, sentences=70)
    play(READING, READING, said(10))
    start_run(dialog=dialog, goal="Read", max_generations=3)
    drive_until_idle(dialog)


def test_an_over_hit_is_a_reason_to_look_and_a_factor(dialog: Dialog, play: Play, plan: list[str]) -> None:
    over_and_over(dialog, play, plan, AtMilestone.OFFER)

    [facts] = loops()
    assert (facts["seen"][0]["count"], facts["over_hits"]) == (2, 1)
    assert (dialog.paused_by, CompactionRun.objects.count()) == ("loop", 0)


def test_where_nobody_wants_to_be_asked_the_agent_begins_afresh(dialog: Dialog, play: Play, plan: list[str]) -> None:
    over_and_over(dialog, play, plan, AtMilestone.AUTOMATIC)

    run = CompactionRun.objects.earliest("id")
    assert (run.trigger, run.status) == ("reset", "applied")
    assert (len(loops()), loops()[0]["paused"], Generation.objects.count()) == (1, False, 3)
