"""The courses that led to the one that is shown: those of its branch, in order, at a price that does not grow."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from dialogs.models import Dialog
from dialogs.pages.reads.transcript import course_page, transcript
from dialogs.transcript.reads.courses import earlier_course, earlier_courses, earlier_ids, id_slice
from dialogs.turns.writes.messages import choose_branch, post_message
from dialogs.turns.writes.tool_calls import add_results
from tests.builders import a_call, a_course, a_generation, an_answer


def exchanged(dialog: Dialog, question: str = "Hello") -> None:
    post_message(dialog=dialog, content=question)
    an_answer(dialog)
    dialog.refresh_from_db()


def after_courses(dialog: Dialog, count: int) -> Dialog:
    """So many courses with one exchange each, and the next one begun."""
    for number in range(count):
        exchanged(dialog, f"Question {number}")
        a_course(dialog)
    dialog.refresh_from_db()
    return dialog


def numbers(dialog: Dialog) -> list[int]:
    dialog.refresh_from_db()
    return [earlier.course.number for earlier in earlier_courses(earlier_ids(dialog))]


def test_earlier_courses_come_in_their_order_and_of_very_many_the_newest_are_listed(
    dialog: Dialog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dialogs.pages.reads.transcript.SHOWN_COURSES", 2)
    assert numbers(after_courses(dialog, 5)) == [1, 2, 3, 4, 5]

    shown, everything = transcript(dialog), transcript(dialog, limit=None)

    assert ([earlier.course.number for earlier in shown.earlier], shown.hidden_courses) == ([4, 5], 3)
    assert (len(everything.earlier), everything.hidden_courses) == (5, 0)


def test_an_earlier_course_says_how_much_was_said_in_it_and_about_what(dialog: Dialog) -> None:
    exchanged(dialog, "\n  Tidy the archive\nand the cellar")
    exchanged(dialog)
    a_course(dialog)
    dialog.refresh_from_db()

    (earlier,) = earlier_courses(earlier_ids(dialog))

    assert (earlier.messages, earlier.generations, earlier.first_words) == (4, 2, "Tidy the archive")


def test_results_of_tools_are_not_counted_as_messages_and_a_page_ends_with_those_of_its_last_call(
    dialog: Dialog,
) -> None:
    exchanged(dialog)
    assert dialog.current_leaf is not None
    a_call(dialog.current_leaf, status="done")
    add_results(dialog)
    dialog.save()
    an_answer(dialog, "Done.")
    dialog.refresh_from_db()
    leaf = dialog.current_leaf
    path = id_slice(course_id=leaf.course_id, last_id=leaf.pk)

    assert [len(path.page(1, 2).ids), len(path.page(1, 2).said)] == [3, 2]
    assert path.page(2, 2).ids == path.page(2, 2).said == (leaf.pk,)
    assert path.last(1).ids == (leaf.pk,)
    a_course(dialog)
    dialog.refresh_from_db()
    assert earlier_courses(earlier_ids(dialog))[0].messages == 3


def test_what_dominds_said_first_is_not_what_a_course_is_about(dialog: Dialog) -> None:
    after_courses(dialog, 1)
    an_answer(dialog, "I list box 8.")
    a_course(dialog)
    dialog.refresh_from_db()

    assert earlier_courses(earlier_ids(dialog))[1].first_words == "I list box 8."


def test_a_course_of_another_branch_is_left_out(dialog: Dialog) -> None:
    exchanged(dialog, "Cats")
    fork = dialog.current_leaf
    assert fork is not None
    a_course(dialog)
    an_answer(dialog)
    dialog.current_leaf = fork
    dialog.save()
    a_course(dialog)
    assert numbers(dialog) == [1]

    choose_branch(dialog=dialog, message=dialog.messages.filter(course__number=2).earliest("seq"))
    a_course(dialog)

    assert numbers(dialog) == [1, 2]
    assert earlier_course(dialog, number=3) is None


def test_the_price_does_not_grow_with_the_courses(dialog: Dialog) -> None:
    counts = []
    for _ in range(3):
        found = Dialog.objects.get(pk=after_courses(dialog, 2).pk)
        with CaptureQueriesContext(connection) as queries:
            transcript(found)
        counts.append(len(queries))

    assert len(set(counts)) == 1, counts


def test_the_texts_of_earlier_courses_are_not_read(dialog: Dialog) -> None:
    exchanged(dialog, f"{'x' * 5_000}needle")
    a_course(dialog)
    found = Dialog.objects.get(pk=dialog.pk)

    assert "needle" not in repr(transcript(found))


# --- Reading one -------------------------------------------------------------------------------


def test_in_an_earlier_course_nothing_can_be_done(dialog: Dialog) -> None:
    exchanged(dialog)
    a_generation(dialog, status="failed", error_code="provider_failed")
    a_course(dialog)
    dialog.refresh_from_db()
    found = earlier_course(dialog, number=1)
    assert found is not None

    rows, _more = course_page(dialog, course_id=found.course.pk, last_id=found.last_id, page=1)

    for row in rows:
        assert not any(getattr(row, name, False) for name in ("is_last_user", "is_last_answer", "can_retry"))
    assert rows[-1].kind == "attempt"
