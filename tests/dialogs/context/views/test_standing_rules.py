"""The page of standing rules: what it shows of what was said, what a person changes, and what the model then sees."""

from __future__ import annotations

import pytest
from django.test import Client

from dialogs.compaction.work import perform
from dialogs.compaction.writes.manual_compaction import request
from dialogs.context.border import chat_request
from dialogs.context.estimate import next_context
from dialogs.context.views import standing_rules
from dialogs.driver.writes.courses import start_course
from dialogs.models import Dialog
from dialogs.transcript.writes.marks import MOST_RULES, lay_down
from dialogs.turns.reads.turns import dialog_to_drive
from health.models import CompactionRun
from tests.dialogs.compacting_builders import RULE, a_history, guard

pytestmark = pytest.mark.django_db(transaction=True)
NEW = "Never write to the customers' table."


def change(client: Client, dialog: Dialog, **form: str) -> int:
    return client.post(f"/dialogs/{dialog.pk}/rules/change/", form).status_code


def shown(client: Client, dialog: Dialog) -> str:
    return client.get(f"/dialogs/{dialog.pk}/rules/").content.decode()


def sent(dialog: Dialog) -> str:
    request = chat_request(next_context(dialog_to_drive(dialog.pk)))
    return "\n\n".join(message.content for message in request.messages)


def test_a_dialog_without_rules_says_how_to_lay_one_down(as_alice: Client, dialog: Dialog) -> None:
    assert "No rule has been laid down yet" in shown(as_alice, dialog)


def test_a_rule_that_was_said_stands_there_with_the_way_to_where_it_was_said(as_alice: Client, dialog: Dialog) -> None:
    first = a_history(dialog, pairs=3)[0]

    page = shown(as_alice, dialog)

    assert "always write to /srv/reports/2031" in page
    assert f"/messages/{first.pk}/" in page


def test_a_rule_of_an_earlier_course_still_stands_there(as_alice: Client, dialog: Dialog) -> None:
    first = a_history(dialog, pairs=3)[0]
    start_course(dialog=dialog)

    page = shown(as_alice, dialog)

    assert "always write to /srv/reports/2031" in page
    assert f"/messages/{first.pk}/" in page


def test_a_rule_that_is_added_stands_in_every_request_of_every_course(as_alice: Client, dialog: Dialog) -> None:
    a_history(dialog, pairs=3)

    assert change(as_alice, dialog, change="add", text=NEW) == 303

    assert NEW in sent(dialog)
    start_course(dialog=dialog, empty=True)
    assert NEW in sent(dialog)


def test_a_rule_that_is_taken_back_is_told_as_such_and_no_compaction_carries_it(
    as_alice: Client, dialog: Dialog
) -> None:
    a_history(dialog, pairs=40)
    guard(dialog)
    text = standing_rules(dialog).in_force[-1].text

    change(as_alice, dialog, change="remove", rule=text)

    run = request(dialog=dialog_to_drive(dialog.pk), by=dialog.owner)
    perform(run.pk, embedder="static")
    made = CompactionRun.objects.get(pk=run.pk)
    assert made.status == "applied"
    assert text not in [entry["text"] for entry in made.ledger]
    assert "No longer in force" in sent(dialog).split(text)[0]


def test_what_was_taken_back_can_be_put_in_force_again(as_alice: Client, dialog: Dialog) -> None:
    a_history(dialog, pairs=3)
    change(as_alice, dialog, change="remove", rule=RULE)

    change(as_alice, dialog, change="restore", rule=RULE)

    assert [rule.text for rule in standing_rules(dialog).in_force if rule.text == RULE] == [RULE]
    assert "No longer in force" not in sent(dialog)


def test_other_words_take_the_place_of_a_rule(as_alice: Client, dialog: Dialog) -> None:
    change(as_alice, dialog, change="add", text=NEW)

    change(as_alice, dialog, change="edit", rule=NEW, text="Ask before you write to any table.")

    assert "Ask before you write to any table." in sent(dialog)
    assert NEW not in sent(dialog)


def test_the_newest_stands_first(as_alice: Client, dialog: Dialog) -> None:
    a_history(dialog, pairs=1)

    change(as_alice, dialog, change="add", text=NEW)

    assert [rule.text for rule in standing_rules(Dialog.objects.get(pk=dialog.pk)).in_force] == [NEW, RULE]


@pytest.mark.parametrize("text", ["", "   ", "x" * 2_001])
def test_a_rule_without_a_text_or_too_long_is_refused_and_stays_in_the_form(
    as_alice: Client, dialog: Dialog, text: str
) -> None:
    answered = as_alice.post(f"/dialogs/{dialog.pk}/rules/change/", {"change": "add", "text": text})

    assert answered.status_code == 422
    assert text in answered.content.decode()
    assert Dialog.objects.get(pk=dialog.pk).standing_rules == []


def test_more_rules_than_a_dialog_may_have_are_refused(as_alice: Client, dialog: Dialog) -> None:
    for number in range(MOST_RULES):
        lay_down(dialog=dialog, text=f"Rule {number}")

    assert change(as_alice, dialog, change="add", text=NEW) == 422


def test_what_stands_in_a_rule_is_no_markup(as_alice: Client, dialog: Dialog) -> None:
    change(as_alice, dialog, change="add", text="<script>alert(1)</script>")

    assert "<script>alert(1)" not in shown(as_alice, dialog)
