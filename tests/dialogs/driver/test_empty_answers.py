"""A model that ends its answer without a word is asked once more; what it then says, or does not say, stands."""

from __future__ import annotations

import pytest

from dialogs.models import Dialog, Generation
from tests.dialogs.driver.conftest import Play, ask, drive_until_idle, said

pytestmark = pytest.mark.django_db(transaction=True)


def test_it_is_asked_once_more(dialog: Dialog, play: Play) -> None:
    requests = play(said(10, ""), said(10, "Berth 7."))

    ask(dialog, "Which berth?")
    dialog = drive_until_idle(dialog)

    assert dialog.current_leaf is not None
    assert (dialog.current_leaf.content, len(requests())) == ("Berth 7.", 2)
    assert requests()[0]["messages"] == requests()[1]["messages"]
    assert Generation.objects.order_by("pk").first().error_code == "empty_answer"  # type: ignore[union-attr]


def test_a_second_empty_answer_is_its_answer(dialog: Dialog, play: Play) -> None:
    requests = play(said(10, " \n"), said(10, ""), said(10, "Too late."))

    ask(dialog, "Which berth?")
    dialog = drive_until_idle(dialog)

    assert dialog.current_leaf is not None
    assert (dialog.current_leaf.role, dialog.current_leaf.content, len(requests())) == ("assistant", "", 2)
