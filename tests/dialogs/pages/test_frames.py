"""What a browser is sent: the rows that are new to it and no others, and a live answer never twice."""

from __future__ import annotations

import re

from django.contrib.auth.models import User
from django.utils.translation import override

from dialogs.agents.writes import add_reminder
from dialogs.api.writes.api_keys import create_key
from dialogs.context.chart import chart
from dialogs.models import LLM, Course, Dialog, ToolCall
from dialogs.models.reminder import Author
from dialogs.pages.live_view import PageDiff, Rendering, render
from dialogs.pages.reads.page import dialog_parts
from dialogs.turns.writes.messages import edit_message, post_message
from tests import client_dialogs
from tests.builders import a_call, a_course, a_generation, a_question, a_reading, an_answer
from tests.dialogs.driver.conftest import ask

ROW = re.compile(r'<article id="([\w-]+)"')
BLOCK = re.compile(r'id="(live-block-\d+)"')


def rendered(dialog: Dialog, *, limit: int | None = None) -> Rendering:
    dialog = Dialog.objects.select_related("agent", "llm__provider").get(pk=dialog.pk)
    with override("en"):
        parts = dialog_parts(dialog, limit=limit)
        return render(parts | {"chart": chart(parts["history"])})


def watching(dialog: Dialog) -> PageDiff:
    screen = PageDiff()
    screen.whole(rendered(dialog))
    return screen


def test_a_new_message_brings_itself_and_what_it_changed(dialog: Dialog) -> None:
    first = ask(dialog)
    answer = an_answer(dialog)
    dialog.refresh_from_db()
    screen = watching(dialog)

    second = ask(dialog, "More")
    sent = screen.update(rendered(dialog))

    # The first question and its answer lose what only the last ones have.
    assert ROW.findall(sent) == [f"message-{first.pk}", f"message-{answer.pk}", f"message-{second.pk}"]


def test_a_part_is_sent_when_it_has_changed_and_only_then(dialog: Dialog) -> None:
    ask(dialog)
    screen = watching(dialog)

    add_reminder(dialog=dialog, content="Buy nails", author=Author.AGENT)
    noted = screen.update(rendered(dialog))
    Dialog.objects.update(stop_requested=True)
    stopping = screen.update(rendered(dialog))

    assert "Buy nails" in noted
    assert 'id="notebook-count" class="notebook-count">1<' in noted
    assert 'id="meter"' not in noted
    assert 'id="turn"' in stopping
    assert "Buy nails" not in stopping


def test_a_turn_that_begins_or_ends_changes_no_earlier_row(dialog: Dialog) -> None:
    ask(dialog)
    screen = watching(dialog)

    a_generation(dialog)
    begun = screen.update(rendered(dialog))
    Dialog.objects.update(stop_requested=True)
    stopping = screen.update(rendered(dialog))

    assert ROW.findall(begun) == ["live"]
    assert ROW.findall(stopping) == []
    assert "Stopping…" in stopping


def test_an_edited_message_takes_the_place_of_the_old_one(dialog: Dialog) -> None:
    ask(dialog, "First")
    an_answer(dialog)
    dialog.refresh_from_db()
    question = ask(dialog, "Second")
    answer = an_answer(dialog)
    dialog.refresh_from_db()
    screen = watching(dialog)

    edited = edit_message(dialog=dialog, message=question, content="Anew")
    sent = screen.update(rendered(dialog))

    assert f'<div id="message-{question.pk}" hx-swap-oob="delete">' in sent
    assert f'<div id="message-{answer.pk}" hx-swap-oob="delete">' in sent
    assert ROW.findall(sent) == [f"message-{edited.pk}"]


def test_the_databases_older_copy_does_not_undo_what_was_streamed(dialog: Dialog) -> None:
    ask(dialog)
    a_generation(dialog, partial_text="One.")
    screen = watching(dialog)
    screen.stream(text="One.\n\nTwo.\n\nThree", reasoning="Hmm")

    post_message(dialog=dialog, content="Meanwhile")
    changed = screen.update(rendered(dialog))
    streamed = screen.stream(text="One.\n\nTwo.\n\nThree.", reasoning="Hmm")

    assert "live" not in ROW.findall(changed)
    assert BLOCK.findall(streamed) == ["live-block-2"]
    assert "live-reasoning" not in streamed


def test_a_whole_screen_goes_on_from_the_databases_copy(dialog: Dialog) -> None:
    ask(dialog)
    a_generation(dialog, partial_text="One.")
    screen = watching(dialog)
    screen.stream(text="One.\n\nTwo.", reasoning="")

    screen.whole(rendered(dialog))
    streamed = screen.stream(text="One.\n\nTwo.", reasoning="")

    assert 'hx-swap-oob="beforeend:#live-blocks"' in streamed
    assert BLOCK.findall(streamed) == ["live-block-1"]


def test_the_first_message_replaces_the_invitation_and_its_text_is_sent_once(dialog: Dialog) -> None:
    screen = watching(dialog)

    ask(dialog, "What was seen in the pump house. " * 200 + "And then?")
    sent = screen.update(rendered(dialog))

    assert sent.count("And then?") == 1
    assert '<section id="transcript"' in sent
    assert "Ask something to begin." not in sent


def test_a_row_that_leaves_a_long_transcript_can_be_asked_for(dialog: Dialog) -> None:
    first = ask(dialog)
    an_answer(dialog)
    dialog.refresh_from_db()
    screen = PageDiff()
    page = screen.whole(rendered(dialog, limit=2))

    ask(dialog, "More")
    sent = screen.update(rendered(dialog, limit=2))

    assert "Show 1 earlier message" not in page
    assert f'<div id="message-{first.pk}" hx-swap-oob="delete">' in sent
    assert "Show 1 earlier message<" in sent


def test_a_call_that_goes_on_brings_its_row_and_no_other(dialog: Dialog) -> None:
    ask(dialog)
    call = a_call(an_answer(dialog))
    screen = watching(dialog)

    ToolCall.objects.filter(pk=call.pk).update(status="done", result="Twelve letters")
    sent = screen.update(rendered(dialog))

    assert ROW.findall(sent) == [f"message-{call.message_id}"]
    assert "Twelve letters" in sent


def test_an_answer_that_is_being_typed_is_left_alone(dialog: Dialog) -> None:
    ask(dialog)
    answer = an_answer(dialog)
    question = a_question(dialog, answer)
    call = a_call(answer)
    screen = watching(dialog)

    ToolCall.objects.filter(pk=call.pk).update(status="running")
    sent = screen.update(rendered(dialog))

    assert re.search(rf'<form [^>]*id="question-form-{question.pk}"[^>]* hx-preserve>', sent)


def test_a_new_course_brings_the_whole_transcript_with_the_earlier_one_folded(dialog: Dialog) -> None:
    ask(dialog, "Long ago")
    an_answer(dialog, "It was so.")
    screen = watching(dialog)

    course = a_course(dialog)
    sent = screen.update(rendered(dialog))

    earlier = Course.objects.get(number=1)
    assert '<section id="transcript"' in sent
    assert re.search(rf'<details class="earlier-course" id="earlier-course-{earlier.pk}"[^>]* hx-preserve>', sent)
    assert f'id="course-{course.number}"' in sent
    assert "It was so." not in sent


def test_remediation_is_told_without_touching_a_row(dialog: Dialog) -> None:
    ask(dialog)
    an_answer(dialog)
    screen = watching(dialog)

    Course.objects.update(level="critical", countdown_turns=3)
    sent = screen.update(rendered(dialog))

    assert ROW.findall(sent) == []
    assert "3 more reminders before a new course" in sent
    assert 'id="courses"' not in sent


def test_what_a_client_drives_brings_its_bar_and_nothing_to_write_in(alice: User, llm: LLM) -> None:
    key, _secret = create_key(owner=alice, name="laptop")
    dialog = client_dialogs.ask(key, llm, client_dialogs.user("Hello"))
    client_dialogs.answered(dialog)
    screen = watching(dialog)

    again = [client_dialogs.assistant("Hi."), client_dialogs.user("More")]
    client_dialogs.ask(key, llm, client_dialogs.user("Hello"), *again, tools=(client_dialogs.A_TOOL,))
    sent = screen.update(rendered(dialog))

    assert "1 tool" in sent
    assert 'id="client-bar"' in sent
    assert not [name for name in ("notebook", "notebook-count", "autonomous") if f'id="{name}"' in sent]


def test_a_dialog_that_clients_drive_is_read_like_any_other_but_asks_nothing(alice: User, llm: LLM) -> None:
    key, _secret = create_key(owner=alice, name="laptop")
    dialog = client_dialogs.ask(key, llm, client_dialogs.user("Hello"))
    a_reading(dialog, 950)
    Course.objects.filter(dialog=dialog).update(level="critical", due="critical")
    Dialog.objects.filter(pk=dialog.pk).update(paused_by="failure")
    dialog.refresh_from_db()

    parts = dialog_parts(dialog)

    assert parts["meter"].level == "critical"
    assert (parts["remediation"], parts["rests"]) == (None, "")
