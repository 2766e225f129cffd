"""What the model saw: the exact list that a generation was sent, and the view that a run made."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from dialogs.compaction.work import perform
from dialogs.compaction.writes.manual_compaction import request
from dialogs.compaction.writes.view_changes import undo
from dialogs.context.estimate import present_context
from dialogs.context.reads import SHOWN_CHARS, seen_after_run, seen_by_generation, stable_prefix
from dialogs.models import Course, Dialog, Message
from dialogs.models.message import MessageOrigin, Role
from dialogs.transcript.writes.dialog_row import add_message
from dialogs.turns.reads.turns import dialog_to_drive
from dialogs.turns.writes.messages import post_message
from health.models import CompactionRun
from tests.builders import a_generation, an_answer, keep_blob
from tests.dialogs.compacting_builders import a_history
from tests.dialogs.compaction_runs import an_applied_run


def compacted(dialog: Dialog, by: User) -> CompactionRun:
    run = request(dialog=dialog, by=by)
    perform(run.pk, embedder="static")
    run.refresh_from_db()
    return run


def texts_to_send(dialog: Dialog) -> list[str]:
    return [piece.content for piece in present_context(dialog_to_drive(dialog.pk)).pieces]


def test_a_run_shows_its_view_and_a_generation_after_it_was_sent_that_and_what_followed(
    alice: User, dialog: Dialog
) -> None:
    a_history(dialog, pairs=12)
    run = compacted(dialog, alice)
    shown = seen_after_run(dialog, run.pk)
    assert shown is not None
    assert shown.messages == run.messages_after == len(texts_to_send(dialog))
    dialog.refresh_from_db()
    post_message(dialog=dialog, content="And now?")
    dialog.refresh_from_db()
    expected = texts_to_send(dialog)
    ids = [piece.message.pk for piece in present_context(dialog_to_drive(dialog.pk)).pieces if piece.message]
    generation = a_generation(dialog, manifest={"messages": ids, "view": run.pk})
    dialog.handled_seq = dialog.wake_seq
    dialog.save()
    undo(dialog=dialog, run_id=run.pk, by=alice)

    seen = seen_by_generation(dialog, generation.pk)

    assert seen is not None
    assert [part.text for part in seen.parts] == [text[:SHOWN_CHARS] for text in expected]
    assert seen.parts[-1].kind == "user"
    assert {"summary", "placeholder"} & {part.kind for part in seen.parts}
    assert seen.tokens == sum(part.tokens for part in seen.parts) > 0


def test_a_generation_was_sent_what_its_manifest_names_and_no_other(dialog: Dialog) -> None:
    post_message(dialog=dialog, content="One")
    an_answer(dialog, "Two")
    push = add_message(
        dialog, role=Role.USER, origin=MessageOrigin.PUSH, content="Go on.", parent=dialog.messages.last()
    )
    dialog.current_leaf = push
    sent = list(dialog.messages.order_by("seq").values_list("pk", flat=True))[1:]
    manifest = {"messages": sent, "instructions": keep_blob("You help."), "notice": ""}
    generation = a_generation(dialog, manifest=manifest)

    seen = seen_by_generation(dialog, generation.pk)

    assert seen is not None
    assert [(part.kind, part.text) for part in seen.parts] == [
        ("instructions", "You help."),
        ("assistant", "Two"),
        ("user", "Go on."),
    ]
    assert seen.messages == 2


def test_a_long_message_is_cut_here_and_counted_whole(dialog: Dialog) -> None:
    post_message(dialog=dialog, content="word " * 2000)
    dialog.refresh_from_db()
    generation = a_generation(dialog, manifest={"messages": [dialog.current_leaf_id]})

    seen = seen_by_generation(dialog, generation.pk)

    assert seen is not None
    part = seen.parts[0]
    assert part.is_cut
    assert len(part.text) == SHOWN_CHARS
    assert part.tokens > 1500


@pytest.mark.parametrize("look", [seen_by_generation, seen_after_run])
def test_another_dialogs_are_not_found(dialog: Dialog, look: object) -> None:
    post_message(dialog=dialog, content="One")
    dialog.refresh_from_db()
    generation = a_generation(dialog)
    other = Dialog.objects.create(owner=dialog.owner, agent=dialog.agent, llm=dialog.llm, active_at=dialog.active_at)

    assert look(other, generation.pk) is None  # type: ignore[operator]


# How much of a request begins as the last one did: rebuilt from what was recorded of the two.


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
