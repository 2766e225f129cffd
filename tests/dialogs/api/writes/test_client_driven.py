"""A dialog that a client drives: nothing is added to it here, it can be stopped, and its view can be changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models import F

from dialogs.agents import writes
from dialogs.api.writes.api_keys import create_key
from dialogs.common.errors import DialogError
from dialogs.compaction.work import perform
from dialogs.compaction.writes import manual_compaction, view_changes
from dialogs.compaction.writes.compaction import cancel_run, queue_run
from dialogs.compaction.writes.manual_compaction import bring_back, discard
from dialogs.context.beginning import standing_now
from dialogs.context.material import material
from dialogs.driver.writes import courses
from dialogs.llms.guard import by_limit
from dialogs.models import LLM, ApiKey, Course, Dialog, Message, MessageMark, ToolCall
from dialogs.models.reminder import Author
from dialogs.pages.writes import (
    change_llm,
    restore_dialog,
    set_compaction,
    set_own_tools,
    set_work_language,
    trash_dialog,
)
from dialogs.transcript.reads.path import course_branch
from dialogs.transcript.writes.marks import lay_down, set_pin, set_priority
from dialogs.turns.reads.turns import dialog_to_drive
from dialogs.turns.writes import autonomous, messages
from dialogs.turns.writes import messages as pausing
from health.compaction.config import ContextConfig
from health.models import CompactionRun
from tests.client_dialogs import answered, ask, assistant, user
from tests.dialogs.compacting_builders import long_text

Write = Callable[[Dialog], object]

TURNS = [
    *(turn for at in range(12) for turn in (user(long_text(at)), assistant(long_text(at + 500)))),
    user("And now?"),
]
WRITERS: dict[str, Write] = {
    "post": lambda dialog: messages.post_message(dialog=dialog, content="Hi"),
    "edit": lambda dialog: messages.edit_message(dialog=dialog, message=first(dialog), content="Hi"),
    "retry": lambda dialog: messages.retry(dialog=dialog),
    "course": lambda dialog: courses.start_course(dialog=dialog),
    "llm": lambda dialog: change_llm(dialog=dialog, llm=dialog.llm),
    "language": lambda dialog: set_work_language(dialog=dialog, language="en"),
    "pause": lambda dialog: pausing.pause(dialog=dialog),
    "go on": lambda dialog: pausing.go_on(dialog=dialog),
    "answer": lambda dialog: messages.answer_question(dialog=dialog, question_id=1, answer="Yes"),
    "run": lambda dialog: autonomous.start_run(dialog=dialog, goal="Win", max_generations=3),
    "reminder": lambda dialog: writes.add_reminder(dialog=dialog, content="Hi", author=Author.PERSON),
    "reminder, again": lambda dialog: writes.update_reminder(
        dialog=dialog, number=1, content="Hi", author=Author.PERSON
    ),
    "reminder, removed": lambda dialog: writes.remove_reminder(dialog=dialog, number=1),
    "reminder, restored": lambda dialog: writes.restore_reminder(dialog=dialog, number=1),
    "reminder, moved": lambda dialog: writes.move_reminder(dialog=dialog, number=1, up=True),
    "taskdoc": lambda dialog: writes.write_taskdoc(dialog=dialog, content="Hi"),
}


def first(dialog: Dialog) -> Message:
    return dialog.messages.earliest("seq")


def stored(dialog: Dialog) -> list[dict[str, Any]]:
    tables = (Message, Course, ToolCall)
    rows = [*Dialog.objects.filter(pk=dialog.pk).values()]
    return rows + [row for table in tables for row in table._default_manager.order_by("pk").values()]


@pytest.fixture
def key(alice: User) -> ApiKey:
    return create_key(owner=alice, name="laptop")[0]


@pytest.fixture
def driven(key: ApiKey, llm: LLM) -> Dialog:
    dialog = ask(key, llm, user("Hello"))
    answered(dialog)
    return dialog


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_nobody_adds_anything_to_it(driven: Dialog, write: Write) -> None:
    before = stored(driven)

    with pytest.raises(DialogError, match="A client drives this conversation"):
        write(driven)

    assert stored(driven) == before


def test_the_copy_for_a_request_beside_another_keeps_what_a_person_laid_down(alice: User, llm: LLM) -> None:
    key = create_key(owner=alice, name="phone", offers_recall=True)[0]
    driven = ask(key, llm, user("Hello"))
    answered(driven)
    lay_down(dialog=driven, text="Never push to main.")
    set_pin(dialog=driven, message_id=first(driven).pk, pinned=True)
    writes.add_reminder(dialog=driven, content="Port 8080", author=Author.AGENT)
    writes.add_reminder(dialog=driven, content="Gone", author=Author.AGENT)
    writes.remove_reminder(dialog=driven, number=2)
    set_compaction(dialog=driven, compaction="off")
    set_own_tools(dialog=driven, own_tools="off")
    ask(key, llm, user("Hello"), assistant("Hi."), user("And now?"))

    copy = ask(key, llm, user("Hello"), assistant("Hi."), user("And then?"))

    assert copy.pk != driven.pk
    beginning = standing_now(dialog_to_drive(copy.pk))
    assert beginning.rules == ("Never push to main.",)
    assert [one.content for one in beginning.reminders] == ["Port 8080"]
    assert first(copy).mark.pinned
    assert (copy.compaction, copy.own_tools) == ("off", "off")


def told_at(hour: str, *more: dict[str, Any]) -> list[dict[str, Any]]:
    """A history in which a client writes the hour anew each time."""
    said = [assistant("So it is."), user("The code is 4711."), assistant("Noted."), user("And now?")]
    return [user("Hello"), assistant("Hi."), user(f"It is {hour}."), *said, *more]


def test_a_pin_goes_along_where_the_client_changes_what_stands_before_it(driven: Dialog, key: ApiKey, llm: LLM) -> None:
    ask(key, llm, *told_at("noon"))
    answered(driven, "Nothing.")
    code = driven.messages.get(content="The code is 4711.")
    set_priority(dialog=driven, message_id=code.pk, priority="1", area="Codes")

    for hour in ("one", "two"):
        assert ask(key, llm, *told_at(hour, assistant("Nothing."), user("Go on"))) == driven
        answered(driven, "Gone.")

    branch = course_branch(Dialog.objects.select_related("current_leaf").get().current_leaf)
    marked = [(one.content, one.mark.priority, one.mark.area) for one in branch if hasattr(one, "mark")]
    assert marked == [("The code is 4711.", 1, "Codes")]


def test_what_was_unpinned_stays_so_on_the_next_branch(driven: Dialog, key: ApiKey, llm: LLM) -> None:
    ask(key, llm, *told_at("noon"))
    answered(driven, "Nothing.")
    set_pin(dialog=driven, message_id=driven.messages.get(content="The code is 4711.").pk, pinned=True)
    ask(key, llm, *told_at("one", assistant("Nothing."), user("Go on")))
    answered(driven, "Gone.")
    newest = driven.messages.filter(content="The code is 4711.").latest("pk")
    set_pin(dialog=driven, message_id=newest.pk, pinned=False)

    ask(key, llm, *told_at("two", assistant("Nothing."), user("Go on")))

    assert not MessageMark.objects.filter(message__pk__gt=newest.pk).exists()


def test_another_version_of_its_history_can_be_looked_at(driven: Dialog, key: ApiKey, llm: LLM) -> None:
    hello, hi = user("Hello"), assistant("Hi.")
    ask(key, llm, hello, hi, user("And now?"))
    answered(driven, "Now.")
    ask(key, llm, hello, hi, user("And then?"))
    answered(driven, "Then.")
    older = driven.messages.get(content="And now?")

    messages.choose_branch(dialog=driven, message=older)

    driven.refresh_from_db()
    assert driven.current_leaf is not None
    assert driven.current_leaf.content == "Now."


def test_a_look_at_another_version_answers_no_call_of_the_clients(key: ApiKey, llm: LLM) -> None:
    waiting = ask(key, llm, user("Weather?"), assistant(None, ("c1", "weather")))
    Dialog.objects.update(handled_seq=F("wake_seq"))

    messages.choose_branch(dialog=waiting, message=first(waiting))

    assert waiting.messages.count() == 2
    assert ToolCall.objects.get(call_id="c1").result_message is None


@pytest.mark.parametrize("stop", [messages.request_stop, trash_dialog])
def test_a_running_turn_can_be_stopped_and_the_trash_gives_it_back_at_rest(
    key: ApiKey, llm: LLM, stop: Callable[..., object]
) -> None:
    running = ask(key, llm, user("Hello"))

    stop(dialog=running)

    running.refresh_from_db()
    assert running.stop_requested
    if running.trashed_at:
        Dialog.objects.update(lease_until=None)
        assert restore_dialog(dialog=running).trashed_at is None


@pytest.fixture
def long(key: ApiKey, llm: LLM) -> Dialog:
    """Twelve long exchanges that a client brought along, and an answer."""
    dialog = ask(key, llm, *TURNS)
    answered(dialog)
    return dialog


def compacted(dialog: Dialog, alice: User) -> CompactionRun:
    run = manual_compaction.request(dialog=dialog, by=alice)
    perform(run.pk, embedder="static")
    run.refresh_from_db()
    return run


def test_a_person_compacts_undoes_redoes_and_brings_back_what_the_model_sees(
    long: Dialog, alice: User, key: ApiKey, llm: LLM
) -> None:
    run = compacted(long, alice)
    assert run.status == "applied", run.reason

    view_changes.undo(dialog=long, run_id=run.pk, by=alice)
    assert long.courses.get().head_run is None
    view_changes.redo(dialog=long, run_id=run.pk, by=alice)
    assert long.courses.get().head_run == run

    gone = long.messages.get(pk=run.removed[-1])
    bring_back(dialog=long, message_id=gone.pk, by=alice)
    head = long.courses.get().head_run
    assert head is not None
    assert gone.pk in {entry.get("message") for entry in head.view}


def test_the_next_request_compacts_again_what_a_person_undid(long: Dialog, alice: User, key: ApiKey, llm: LLM) -> None:
    run = compacted(long, alice)
    view_changes.undo(dialog=long, run_id=run.pk, by=alice)
    assert long.courses.get().guard_held

    assert ask(key, llm, *TURNS, assistant("Hi."), user("Go on")) == long

    assert not long.courses.get().guard_held


def test_what_nobody_answered_stays_in_what_the_model_sees(alice: User, key: ApiKey, llm: LLM) -> None:
    whales = f"Write the report about WHALES. {long_text(77, 12)}"
    dialog = ask(key, llm, *TURNS[:-1], user(whales), user("In French, please."), assistant(None, ("c1", "weather")))
    Dialog.objects.update(handled_seq=F("wake_seq"), lease_until=None)
    run = queue_run(dialog, guard=by_limit(dialog), trigger="manual")

    kept = [unit.content for unit in material(run, ContextConfig()).state.units if unit.pinned]

    assert kept == [whales]


def test_a_person_marks_previews_and_cancels(long: Dialog, alice: User) -> None:
    set_pin(dialog=long, message_id=first(long).pk, pinned=True)
    set_priority(dialog=long, message_id=first(long).pk, priority="1")
    preview = manual_compaction.request(dialog=long, by=alice, preview=True)
    perform(preview.pk, embedder="static")
    discard(dialog=long, run_id=preview.pk)
    queued = manual_compaction.request(dialog=long, by=alice)
    cancel_run(dialog=long, run_id=queued.pk)

    statuses = set(CompactionRun.objects.values_list("status", flat=True))

    assert statuses == {"cancelled"}


def test_a_person_begins_afresh_for_the_model(long: Dialog, alice: User) -> None:
    run = manual_compaction.reset(dialog=long, by=alice)
    perform(run.pk, embedder="static")

    run.refresh_from_db()
    assert run.status == "applied"
    assert "handover" in {entry.get("kind") for entry in run.view}
