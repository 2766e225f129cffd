"""A sample that is brought in, and what each stop of its tour does to it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone, translation

from dialogs.common.errors import DialogBusy
from dialogs.compaction.work import perform
from dialogs.compaction.writes.manual_compaction import bring_back
from dialogs.models import LLM, Agent, Course, Dialog, MessageMark
from dialogs.models.dialog import Stop
from dialogs.sample.writes import begin_sample, close, go_on
from health.models import CompactionRun
from tests.builders import an_answer
from tests.dialogs.compaction_runs import an_applied_run

pytestmark = pytest.mark.django_db


@pytest.fixture
def sample(alice: User, agent: Agent) -> Dialog:
    return begin_sample(owner=alice, agent=agent)


def press(dialog: Dialog, stop: str) -> Dialog:
    """The button of this stop, where the tour has come to."""
    Dialog.objects.filter(pk=dialog.pk).update(tour=stop)
    dialog.refresh_from_db()
    go_on(dialog=dialog, stop=stop, by=dialog.owner)
    dialog.refresh_from_db()
    return dialog


def compacted(sample: Dialog) -> CompactionRun:
    """Its first messages are no longer seen; the last two are."""
    shown = list(sample.messages.order_by("-seq").values_list("pk", flat=True)[:2])
    return an_applied_run(sample, view=[{"message": pk} for pk in reversed(shown)])


def head(dialog: Dialog) -> int | None:
    return Course.objects.get(dialog=dialog).head_run_id


def test_a_sample_is_a_day_of_work_of_the_chosen_agent_with_calls_a_rule_and_a_change_of_mind(
    sample: Dialog, agent: Agent
) -> None:
    assert (sample.agent, sample.llm) == (agent, agent.llm)
    said = "\n".join(sample.messages.values_list("content", flat=True))

    assert "Never touch the payments tables" in said
    assert "I changed my mind" in said
    assert sample.messages.filter(calls__status="done").count() == 3


def test_a_sample_speaks_the_language_that_its_owner_reads_and_asks_in_it(alice: User, agent: Agent) -> None:
    with translation.override("zh-hans"):
        dialog = begin_sample(owner=alice, agent=agent)

    assert dialog.work_language == "zh-hans"
    assert dialog.messages.filter(content__contains="绝对不要动支付表").exists()

    press(dialog, Stop.METER)
    assert "陈丹" in dialog.messages.latest("seq").content


def test_a_sample_ends_as_if_its_day_were_today(sample: Dialog) -> None:
    last = sample.messages.latest("seq")

    assert abs(timezone.now() - last.created_at) < timedelta(minutes=1)
    assert timezone.now() - sample.created_at > timedelta(hours=7)


@pytest.mark.parametrize(
    ("stop", "then", "words"),
    [
        (Stop.METER, Stop.RISE, "about the index"),
        (Stop.RISE, Stop.COMPACTION, "my notes of the afternoon"),
    ],
)
def test_the_first_stops_ask_what_makes_the_meter_rise(sample: Dialog, stop: Stop, then: Stop, words: str) -> None:
    press(sample, stop)

    assert sample.tour == then
    assert words in sample.messages.latest("seq").content
    assert sample.is_busy


def test_the_tour_waits_while_the_agent_works_and_asks_nothing_twice(sample: Dialog) -> None:
    press(sample, Stop.METER)
    count = sample.messages.count()

    go_on(dialog=sample, stop=Stop.METER, by=sample.owner)
    assert sample.messages.count() == count

    with pytest.raises(DialogBusy):
        go_on(dialog=sample, stop=Stop.RISE, by=sample.owner)
    sample.refresh_from_db()
    assert sample.tour == Stop.RISE


def test_no_notes_are_sent_where_something_was_compacted_already(sample: Dialog) -> None:
    compacted(sample)
    count = sample.messages.count()

    press(sample, Stop.RISE)

    assert (sample.tour, sample.messages.count()) == (Stop.COMPACTION, count)


def test_a_window_that_is_far_from_full_is_compacted_at_a_press(sample: Dialog) -> None:
    press(sample, Stop.COMPACTION)

    run = CompactionRun.objects.get(dialog=sample)
    assert (sample.tour, run.trigger, run.status) == (Stop.COMPACTION, "manual", "queued")


def test_a_press_compacts_it_though_half_of_it_must_stay(sample: Dialog) -> None:
    """The notes that were typed last, instructions and tools."""
    LLM.objects.update(context_length=32_768)
    press(sample, Stop.RISE)
    an_answer(sample, "The index is built on Wednesday.")
    press(sample, Stop.COMPACTION)
    run = CompactionRun.objects.get(dialog=sample)

    perform(run.pk, embedder="static")

    run.refresh_from_db()
    assert run.status == "applied"
    assert [step["phase"] for step in run.steps if step["changed"]] == ["select_passages", "success"]


def test_what_was_compacted_leads_on(sample: Dialog) -> None:
    compacted(sample)

    assert press(sample, Stop.COMPACTION).tour == Stop.DIVIDER


def test_undo_and_redo_are_done_before_ones_eyes(sample: Dialog) -> None:
    run = compacted(sample)

    press(sample, Stop.UNDO)
    undone = head(sample)
    press(sample, Stop.REDO)

    assert (undone, head(sample)) == (None, run.pk)
    assert sample.tour == Stop.ARCHIVE


def test_who_undid_it_by_hand_is_led_on_all_the_same(sample: Dialog) -> None:
    compacted(sample)
    press(sample, Stop.UNDO)

    assert press(sample, Stop.UNDO).tour == Stop.REDO


def test_one_message_is_brought_back_from_the_archive(sample: Dialog) -> None:
    compacted(sample)

    press(sample, Stop.ARCHIVE)

    assert sample.tour == Stop.RECALL
    assert MessageMark.objects.get(pinned=True).message.content == "Run the tests, please."


def test_where_all_was_brought_back_already_the_tour_goes_on(sample: Dialog) -> None:
    everything = list(sample.messages.order_by("seq").values_list("pk", flat=True))
    an_applied_run(sample, view=[{"message": pk} for pk in everything])

    assert press(sample, Stop.ARCHIVE).tour == Stop.RECALL


def test_the_last_stop_ends_the_tour(sample: Dialog) -> None:
    assert press(sample, Stop.RECALL).tour == Stop.CLOSED


def test_a_tour_can_be_closed_at_any_stop_and_a_dialog_that_is_no_sample_has_none(
    sample: Dialog, dialog: Dialog
) -> None:
    for one, tour in ((sample, Stop.CLOSED), (dialog, Stop.NO_SAMPLE)):
        close(dialog=one)
        one.refresh_from_db()
        assert one.tour == tour


def test_a_sample_goes_on_like_any_dialog_once_its_tour_is_over(sample: Dialog) -> None:
    press(sample, Stop.METER)

    an_answer(sample, "It is quicker now.")

    run = compacted(sample)
    first = sample.messages.order_by("seq").first()
    assert first is not None
    bring_back(dialog=sample, message_id=first.pk, by=sample.owner)
    assert head(sample) not in (None, run.pk)
