"""A model that ends its answer without a word is asked once more and told why; what it says then stands."""

from __future__ import annotations

import pytest

from dialogs.context.reads import seen_by_generation
from dialogs.models import Dialog, Generation
from tests.dialogs.driver.conftest import Play, ask, drive_until_idle, said

URGE = "Your answer to this was empty. Please answer it now."

DOWN = {"error": {"code": "provider_unreachable", "message": "nobody listens"}}

pytestmark = pytest.mark.django_db(transaction=True)


def test_it_is_asked_once_more(dialog: Dialog, play: Play) -> None:
    requests = play(said(10, ""), said(10, "Berth 7."))

    ask(dialog, "Which berth?")
    dialog = drive_until_idle(dialog)

    assert dialog.current_leaf is not None
    assert (dialog.current_leaf.content, len(requests())) == ("Berth 7.", 2)
    assert [one["messages"][-1]["content"] for one in requests()] == ["Which berth?", f"Which berth?\n\n{URGE}"]
    assert Generation.objects.order_by("pk").first().error_code == "empty_answer"  # type: ignore[union-attr]


def test_what_it_was_told_the_second_time_is_recorded(dialog: Dialog, play: Play) -> None:
    play(said(10, ""), said(10, "Berth 7."))

    ask(dialog, "Which berth?")
    dialog = drive_until_idle(dialog)

    first, second = (seen_by_generation(dialog, one.pk) for one in dialog.generations.order_by("pk"))
    assert first
    assert second
    assert [seen.parts[-1].text for seen in (first, second)] == ["Which berth?", f"Which berth?\n{URGE}"]


def test_the_next_message_is_sent_as_it_was_typed(dialog: Dialog, play: Play) -> None:
    requests = play(said(10, ""), said(10, "Berth 7."), said(10, "At noon."))

    for text in ("Which berth?", "When?"):
        ask(dialog, text)
        dialog = drive_until_idle(dialog)

    assert [one["content"] for one in requests()[-1]["messages"][-3:]] == ["Which berth?", "Berth 7.", "When?"]


def test_a_second_empty_answer_is_its_answer(dialog: Dialog, play: Play) -> None:
    requests = play(said(10, " \n"), said(10, ""), said(10, "Too late."))

    ask(dialog, "Which berth?")
    dialog = drive_until_idle(dialog)

    assert dialog.current_leaf is not None
    assert (dialog.current_leaf.role, dialog.current_leaf.content, len(requests())) == ("assistant", "", 2)


def test_a_try_that_failed_for_another_reason_is_not_counted(dialog: Dialog, play: Play) -> None:
    requests = play(DOWN, said(10, ""), said(10, "Berth 7."))

    ask(dialog, "Which berth?")
    dialog = drive_until_idle(dialog)

    assert dialog.current_leaf is not None
    assert (dialog.current_leaf.content, len(requests())) == ("Berth 7.", 3)
