"""The page "What would it still know?": what stands before the model now, and after a compaction that is only tried."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from dialogs.compaction.reads import still_known as selector
from dialogs.compaction.reads.still_known import EntryPresence, still_known
from dialogs.compaction.work import perform
from dialogs.compaction.writes.manual_compaction import request
from dialogs.driver.writes.courses import start_course
from dialogs.models import Dialog
from dialogs.transcript.writes.marks import lay_down
from health.compaction.reading.ledger import Presence
from health.models import CompactionRun
from tests.dialogs.compacting_builders import RULE, a_history, guard

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def said(dialog: Dialog) -> Dialog:
    """Thirty pairs, the first of them with a rule, and room for far more."""
    guard(dialog, limit=50_000)
    a_history(dialog, pairs=30)
    dialog.refresh_from_db()
    return dialog


def rule_of(dialog: Dialog, **trial: object) -> EntryPresence:
    return next(one for one in still_known(dialog, **trial).known if RULE in one.text)  # type: ignore[arg-type]


def test_what_was_said_and_nobody_compacted_is_known_word_for_word(said: Dialog) -> None:
    found = still_known(said)

    assert found.known
    assert {one.now for one in found.known} == {Presence.KEPT}
    assert found.then is None


def test_after_a_compaction_the_rule_stays_and_some_facts_stand_in_the_archive_only(said: Dialog) -> None:
    found = still_known(said, limit=900)

    assert rule_of(said, limit=900).then == Presence.KEPT
    assert found.then is not None
    assert found.then["gone"] > 0
    assert found.then_tokens is not None
    assert found.then_tokens <= 900 < found.now_tokens


def test_rules_come_before_facts(said: Dialog) -> None:
    kinds = [one.kind for one in still_known(said).known]

    assert (kinds[0], kinds[-1]) == ("rule", "fact")


def test_a_rule_written_by_hand_stands_first_and_stays_through_every_compaction(said: Dialog) -> None:
    lay_down(dialog=said, text="Never write to the customers' table.")
    said.refresh_from_db()

    first = still_known(said, limit=900).known[0]

    assert (first.text, first.source) == ("Never write to the customers' table.", None)
    assert (first.now, first.then) == (Presence.KEPT, Presence.KEPT)


def test_more_room_keeps_no_less(said: Dialog) -> None:
    gone = [found.then["gone"] for limit in (900, 1800, 3600) if (found := still_known(said, limit=limit)).then]

    assert gone == sorted(gone, reverse=True)
    assert gone[0] > gone[-1]


def test_what_comes_to_nothing_is_said_to(said: Dialog) -> None:
    assert [still_known(said, limit=limit).comes_to_nothing for limit in (300, 900)] == [True, False]


def test_a_trial_changes_nothing(said: Dialog) -> None:
    before = still_known(said)

    still_known(said, compacted=True)

    assert CompactionRun.objects.count() == 0
    assert still_known(said) == before


def test_what_was_predicted_of_compact_now_is_what_comes(said: Dialog, alice: User) -> None:
    predicted = still_known(said, compacted=True)

    perform(request(dialog=said, by=alice).pk, embedder="static")

    assert still_known(said).now == predicted.then


def test_what_was_said_in_an_earlier_course_is_told_with_it(said: Dialog) -> None:
    start_course(dialog=said, empty=True)

    known = still_known(said).known
    assert {one.source.course.number for one in known if one.source} == {1}
    assert Presence.GONE in {one.now for one in known}


def test_a_dialog_that_is_too_large_is_not_tried(said: Dialog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selector, "MOST_TOKENS", 500)

    found = still_known(said, compacted=True)

    assert (found.is_too_large, found.then) == (True, None)


def test_the_panel_and_compact_now_lead_to_it(as_alice: Client, said: Dialog) -> None:
    page = f"/dialogs/{said.pk}/still-known/"

    assert f'href="{page}"' in as_alice.get(f"/dialogs/{said.pk}/budget/").content.decode()
    assert f'href="{page}?compacted=on"' in as_alice.get(f"/dialogs/{said.pk}/compaction/").content.decode()


@pytest.mark.parametrize(
    ("query", "status"), [("", 200), ("?compacted=on", 200), ("?limit=900", 200), ("?limit=3", 422), ("?limit=x", 422)]
)
def test_the_page_shows_it_and_names_a_wrong_limit(as_alice: Client, said: Dialog, query: str, status: int) -> None:
    response = as_alice.get(f"/dialogs/{said.pk}/still-known/{query}")

    assert response.status_code == status
    assert RULE in response.content.decode()


def test_no_message_in_which_something_was_said_costs_a_query_of_its_own(as_alice: Client, said: Dialog) -> None:
    known = len(still_known(said).known)

    with CaptureQueriesContext(connection) as asked:
        page = as_alice.get(f"/dialogs/{said.pk}/still-known/").content.decode()

    assert page.count("where it was said, course 1") == known > 30
    assert len([one for one in asked if 'FROM "dialogs_course"' in one["sql"]]) < 5


def test_an_empty_dialog_has_a_page_too(as_alice: Client, dialog: Dialog) -> None:
    assert "Nothing to look for yet" in as_alice.get(f"/dialogs/{dialog.pk}/still-known/").content.decode()
