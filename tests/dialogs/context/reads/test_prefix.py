"""How much of a request begins as the last one did: rebuilt from what was recorded of the two."""

from __future__ import annotations

import pytest

from dialogs.context.reads import stable_prefix
from dialogs.models import Course, Dialog, Message
from tests.builders import a_generation, keep_blob
from tests.dialogs.compacting_builders import a_history
from tests.dialogs.compaction_runs import an_applied_run


@pytest.fixture
def said(dialog: Dialog) -> list[Message]:
    """Ten messages of 100 characters each."""
    messages = a_history(dialog, pairs=5)
    Message.objects.update(content="x" * 100)
    return messages


def asked(dialog: Dialog, *messages: Message, **manifest: object) -> None:
    a_generation(dialog, manifest={"messages": [one.pk for one in messages], **manifest})


def share(dialog: Dialog) -> float | None:
    return stable_prefix(Course.objects.get(dialog=dialog).pk)


def test_there_is_none_before_the_second_request(dialog: Dialog, said: list[Message]) -> None:
    assert share(dialog) is None
    asked(dialog, *said[:1])
    assert share(dialog) is None


def test_a_longer_request_begins_as_the_shorter_one(dialog: Dialog, said: list[Message]) -> None:
    asked(dialog, *said[:7])
    asked(dialog, *said[:10])

    assert share(dialog) == pytest.approx(0.7)


def test_other_instructions_leave_nothing_in_common(dialog: Dialog, said: list[Message]) -> None:
    asked(dialog, *said[:5], instructions=keep_blob("You help."))
    asked(dialog, *said[:5], instructions=keep_blob("You sulk."))

    assert share(dialog) == 0


def test_a_new_taskdoc_keeps_what_stands_ahead_of_it(dialog: Dialog, said: list[Message]) -> None:
    same = keep_blob("i" * 300)
    asked(dialog, *said[:5], instructions=same, taskdoc=keep_blob("a" * 200))
    asked(dialog, *said[:5], instructions=same, taskdoc=keep_blob("b" * 200))

    assert share(dialog) == pytest.approx(0.3)


def test_a_summary_counts_by_its_text(dialog: Dialog, said: list[Message]) -> None:
    summary = {"content": "s" * 100, "kind": "summary", "covers": [one.pk for one in said[1:8]]}
    run = an_applied_run(dialog, view=[{"message": said[0].pk}, summary, *({"message": one.pk} for one in said[8:])])
    asked(dialog, *said)
    asked(dialog, said[0], *said[8:], view=run.pk)

    assert share(dialog) == pytest.approx(0.25)

    asked(dialog, said[0], *said[8:], view=run.pk)
    assert share(dialog) == 1


def test_a_shortened_message_is_another_text(dialog: Dialog, said: list[Message]) -> None:
    short = an_applied_run(dialog, view=[{"message": said[0].pk}, {"message": said[1].pk, "content": "y" * 20}])
    asked(dialog, *said[:2])
    asked(dialog, *said[:2], view=short.pk)

    assert share(dialog) == pytest.approx(100 / 120)
