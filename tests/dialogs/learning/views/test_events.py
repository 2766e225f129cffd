"""The page of context events: one's own with filters and files, counts of everybody's for staff, and no more queries
however many there are."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from dialogs.models import LLM, Agent, Dialog
from dialogs.turns.writes.events import log
from health.models import ContextEvent
from tests.dialogs.compaction_runs import a_run
from tests.dialogs.pages.views.pages import HTMX, page

EVENTS = "/events/"
COUNTS = f"{EVENTS}counts/"
CODES = ContextEvent.Code.values


def an_event(dialog: Dialog, code: str = "OVER_HIT", *, days: int = 0, **fields: Any) -> ContextEvent:
    event = log(code, dialog, **fields)
    ContextEvent.objects.filter(pk=event.pk).update(happened_at=timezone.now() - timedelta(days=days))
    return event


def another(dialog: Dialog, **fields: Any) -> Dialog:
    values = {"owner": dialog.owner, "agent": dialog.agent, "llm": dialog.llm, "active_at": timezone.now()}
    return Dialog.objects.create(**(values | fields))


def test_an_event_says_where_it_happened_how_much_it_was_and_why(as_alice: Client, dialog: Dialog) -> None:
    Dialog.objects.filter(pk=dialog.pk).update(title="The pump")
    an_event(dialog, "TOKEN_LIMIT_EXCEEDED", estimated=5200, limit=5000, reason="there is nothing older to prune")

    shown = page(as_alice, EVENTS)

    assert f"/dialogs/{dialog.pk}/" in shown.links()
    for words in ("The pump", "Helper", "≈5,200 / 5,000", "the limit was exceeded", "nothing older to prune"):
        assert words in shown.text
    assert shown.offences == []


def test_a_cause_of_an_events_own_is_told_and_not_how_its_compaction_ended(as_alice: Client, dialog: Dialog) -> None:
    run = a_run(dialog, status="applied", reason="Context reduced to ≈3,400 / 5,000 tokens.")
    an_event(dialog, "PRUNER_FAILED", run=run, limit=5000, cause="Rejected: it is no JSON")

    shown = page(as_alice, EVENTS).text

    assert "it is no JSON" in shown
    assert "Context reduced" not in shown


def test_nobody_sees_another_persons_events(as_bob: Client, dialog: Dialog) -> None:
    an_event(dialog, reason="secret plan")

    assert "Nothing happened" in page(as_bob, EVENTS).text
    assert as_bob.get(f"{EVENTS}export.json").json()["events"] == []


def test_staff_see_counts_of_all_and_contents_of_none_but_their_own(as_sam: Client, dialog: Dialog) -> None:
    Dialog.objects.filter(pk=dialog.pk).update(title="Alice alone")
    an_event(dialog)
    an_event(dialog)

    shown, response = page(as_sam, EVENTS), as_sam.get(COUNTS)

    counts = response.context["counts"]
    assert counts.by_code == [("OVER_HIT", 2)]
    assert counts.by_agent == [("Helper", 2)]
    assert counts.by_day == [(timezone.now().strftime("%Y-%m-%d"), 2)]
    for told in (shown.text, response.content.decode()):
        assert "Alice alone" not in told
        assert str(dialog.pk) not in told
    assert not any(str(dialog.pk) in link for link in shown.links())


def test_who_has_no_javascript_opens_the_counts_by_a_link_of_what_the_filter_leaves(
    as_sam: Client, dialog: Dialog
) -> None:
    an_event(dialog)
    an_event(dialog, "WARNING")
    asked = as_sam.get(f"{EVENTS}?code=WARNING").context["counts"]
    assert as_sam.get(asked).context["counts"].by_code == [("WARNING", 1)]

    link = as_sam.get(EVENTS).context["counts"]

    assert link in page(as_sam, EVENTS).links()
    assert "By agent" in page(as_sam, link).text
    assert "<html" not in as_sam.get(link, headers=HTMX).content.decode()


def test_others_see_no_counts(as_alice: Client, dialog: Dialog) -> None:
    an_event(dialog)

    assert as_alice.get(EVENTS).context["counts"] == ""
    assert as_alice.get(COUNTS).status_code == 403


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ["WARNING", "OVER_HIT"]),
        ("?code=OVER_HIT", ["OVER_HIT"]),
        ("?agent={zoe}", ["WARNING"]),
        ("?llm={llm}&days=", ["WARNING", "OVER_HIT", "REPORTED"]),
        ("?days=1", ["WARNING"]),
        ("?code=nonsense&agent=nonsense&llm=99999999999999999999&days=nonsense&before=x", ["WARNING", "OVER_HIT"]),
    ],
)
def test_a_filter_leaves_what_was_asked_for(as_alice: Client, dialog: Dialog, query: str, expected: list[str]) -> None:
    zoe = Agent.objects.create(name="Zoe", slug="zoe", llm=dialog.llm)
    an_event(dialog, "REPORTED", days=40)
    an_event(dialog, "OVER_HIT", days=3)
    an_event(another(dialog, agent=zoe), "WARNING")

    shown = as_alice.get(EVENTS + query.format(zoe=zoe.pk, llm=dialog.llm_id)).context["events"]

    assert [event.code for event, _cause in shown] == expected


def test_older_pages_go_on_where_the_one_before_ended(as_alice: Client, dialog: Dialog) -> None:
    made = [an_event(dialog).pk for _one in range(120)]
    ContextEvent.objects.update(happened_at=timezone.now())  # several in one moment

    read: list[int] = []
    url = EVENTS
    while url:
        context = as_alice.get(url).context
        read += [event.pk for event, _cause in context["events"]]
        url = context["older"]

    assert read == made[::-1]


def test_the_page_asks_no_more_however_many_events_there_are(
    as_sam: Client, sam: User, dialog: Dialog, django_assert_num_queries: Callable[..., Any]
) -> None:
    Dialog.objects.filter(pk=dialog.pk).update(owner=sam)
    dialog.refresh_from_db()
    for _one in range(10):
        an_event(another(dialog))

    # Who it is (2), events, choices (3).
    with django_assert_num_queries(6):
        as_sam.get(EVENTS)
    # Who it is (2), by code, by agent (2), by day.
    with django_assert_num_queries(6):
        as_sam.get(COUNTS)


def test_the_file_has_every_event_and_no_formula(as_alice: Client, dialog: Dialog) -> None:
    an_event(dialog, "PRUNER_FAILED", limit=5000, cause="=1+1")
    an_event(dialog, estimated=5200, limit=5000)

    response = as_alice.get(f"{EVENTS}export.csv")

    newest, oldest = csv.DictReader(io.StringIO(response.content.decode()))
    assert (newest["code"], newest["estimated_tokens"], newest["agent"]) == ("OVER_HIT", "5200", "helper")
    assert oldest["cause"] == "'=1+1"
    assert "attachment" in response["Content-Disposition"]


def test_the_filters_offer_only_what_something_happened_to_and_what_is_asked_for(
    as_alice: Client, dialog: Dialog
) -> None:
    never = Agent.objects.create(name="Never used", slug="never", llm=dialog.llm)
    LLM.objects.create(provider=dialog.llm.provider, model_id="never-used")
    an_event(dialog, "OVER_HIT")

    def kinds(address: str) -> set[str | None]:
        shown = page(as_alice, address)
        return {attrs.get("value") for tag, attrs in shown.tags if tag == "option" and attrs.get("value") in CODES}

    shown, asked = as_alice.get(EVENTS).context, as_alice.get(f"{EVENTS}?agent={never.pk}").context
    assert [agent.name for agent in shown["agents"]] == ["Helper"]
    assert [llm.pk for llm in shown["llms"]] == [dialog.llm_id]
    assert never in asked["agents"]
    assert kinds(EVENTS) == {"OVER_HIT"}
    assert kinds(f"{EVENTS}?code=TOKEN_LIMIT_EXCEEDED") == {"OVER_HIT", "TOKEN_LIMIT_EXCEEDED"}
