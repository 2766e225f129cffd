"""The archive page: everything the model no longer sees, by what took it away; found, read whole, and brought back."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from dialogs.context.estimate import present_context
from dialogs.models import Course, Dialog, Message
from dialogs.transcript import model_view
from dialogs.turns.reads.turns import dialog_to_drive
from dialogs.turns.writes.messages import post_message
from health.models import CompactionRun
from tests.builders import a_course
from tests.dialogs.compacting_builders import a_history
from tests.dialogs.compaction_runs import an_applied_run
from tests.dialogs.pages.views.pages import HTMX, Page, page


@pytest.fixture
def history(dialog: Dialog) -> list[Message]:
    """Six questions with their answers; the dialog is at rest."""
    return a_history(dialog, pairs=6)


@pytest.fixture
def compacted(dialog: Dialog, history: list[Message]) -> CompactionRun:
    """Two answers are gone, one is shortened; of the losses one still stands."""
    gone = (history[3], history[5])
    view = [{"message": one.pk, **({"content": "Short."} if one is history[6] else {})} for one in history]
    return an_applied_run(
        dialog,
        view=[entry for entry in view if entry["message"] not in {one.pk for one in gone}],
        removed=[one.pk for one in gone],
        coverage=[
            {"message": str(gone[0].pk), "extent": "in part", "read": 120, "total": 3400},
            {"message": str(gone[1].pk), "extent": "not at all", "read": 0, "total": 300},
        ],
        losses=[
            {"text": "Answer 1", "kind": "identifier", "message": str(gone[0].pk), "kept": False},
            {"text": "Answer 2", "kind": "number", "message": str(gone[1].pk), "kept": False},
            {"text": "Never tell.", "kind": "binding", "message": str(gone[1].pk), "kept": False},
            {"text": "/srv/reports/2031", "kind": "path", "message": str(gone[1].pk), "kept": True},
        ],
    )


def url(dialog: Dialog, rest: str = "") -> str:
    return f"/dialogs/{dialog.pk}/archive-of-context/{rest}"


def words(found: Page) -> str:
    return " ".join(found.text.split())


def items(found: Page) -> list[int]:
    return [int(str(attrs["id"]).split("-")[1]) for tag, attrs in found.tags if tag == "li" and attrs.get("id")]


def sent(dialog: Dialog) -> list[str]:
    return [piece.content for piece in present_context(dialog_to_drive(dialog.pk)).pieces]


def test_it_holds_what_the_model_no_longer_sees_and_tells_what_is_only_to_be_found_there(
    as_alice: Client, dialog: Dialog, history: list[Message], compacted: CompactionRun
) -> None:
    assert url(dialog) in page(as_alice, f"/dialogs/{dialog.pk}/").links()
    found = page(as_alice, url(dialog))

    assert items(found) == [history[3].pk, history[5].pk, history[6].pk]
    assert "3 messages" in words(found)
    assert history[3].content in words(found)
    assert "course 1" in words(found)
    assert "≈" in words(found)
    assert "read in part: 120 of 3,400 characters" in words(found)
    assert "left out; only rules and values that you stated in it are carried on" in words(found)
    text = words(found)
    assert "3 details are only here · 1 still stands in the context" in text
    assert "identifier Answer 1" in text
    assert text.index("binding sentence Never tell.") < text.index("number Answer 2")
    assert found.offences == []


def test_runs_and_courses_stand_apart_the_newest_first(
    as_alice: Client, dialog: Dialog, history: list[Message], compacted: CompactionRun
) -> None:
    second = an_applied_run(
        dialog, parent_run=compacted, trigger="manual", view=[{"message": one.pk} for one in history[8:]]
    )
    a_course(dialog)

    found = page(as_alice, url(dialog))

    text = words(found)
    assert items(found)[:4] == [one.pk for one in history[8:]]
    assert set(items(found)) == {one.pk for one in history}
    assert text.index("Left behind with course 1") < text.index("by hand") < text.index("before sending")
    assert [pk for pk in items(found) if pk in compacted.removed] == compacted.removed
    assert second.pk > compacted.pk


def test_nothing_archived_is_said_in_words(as_alice: Client, dialog: Dialog) -> None:
    assert "Nothing was left out" in words(page(as_alice, url(dialog)))
    a_history(dialog, pairs=6)

    found = page(as_alice, url(dialog))

    assert items(found) == []
    assert "The model sees the whole dialog." in words(found)
    assert not [attrs for tag, attrs in found.tags if tag == "input" and attrs.get("type") == "search"]


def test_search_finds_only_what_is_archived(
    as_alice: Client, dialog: Dialog, history: list[Message], compacted: CompactionRun
) -> None:
    both = page(as_alice, url(dialog, "?q=answer"))
    none = page(as_alice, url(dialog, "?q=zebra%22%20OR"))

    assert set(items(both)) == {history[3].pk, history[5].pk}
    assert "Found for “answer”" in words(both)
    assert "No message here has all these words." in words(none)
    assert both.offences == none.offences == []


def test_a_long_archive_comes_in_pages(
    as_alice: Client,
    dialog: Dialog,
    history: list[Message],
    compacted: CompactionRun,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dialogs.compaction.reads.archive.PAGE", 2)

    first, second = page(as_alice, url(dialog)), page(as_alice, url(dialog, "?page=2"))

    assert (items(first), items(second)) == ([history[3].pk, history[5].pk], [history[6].pk])
    assert any("page=2" in link for link in first.links())
    assert any("page=1" in link for link in second.links())
    for query in ("?page=x", "?page=-1", "?page=" + "9" * 30, "?q=answer&page=2"):
        assert as_alice.get(url(dialog, query)).status_code == 200


@pytest.mark.parametrize("query", ["", "answer"])
def test_a_long_life_takes_no_more_queries_than_a_short_one(
    as_alice: Client, dialog: Dialog, history: list[Message], compacted: CompactionRun, query: str
) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as asked:
            assert len(items(page(as_alice, url(dialog, f"?q={query}")))) >= 2
        return len(asked)

    a_course(dialog)
    before = queries()

    for _course in range(4):
        said = a_history(dialog, pairs=3)
        first = an_applied_run(dialog, view=[{"message": one.pk} for one in said[2:]])
        view = [{"message": one.pk} for one in said[4:]]
        an_applied_run(dialog, parent_run=first, view=view, losses=compacted.losses)
        a_course(dialog)

    assert queries() == before


def test_a_long_message_is_shown_by_its_beginning(as_alice: Client, dialog: Dialog, compacted: CompactionRun) -> None:
    long = "Begin <b> " + "x" * 5_000
    Message.objects.filter(pk=compacted.removed[0]).update(content=long)

    shown = page(as_alice, url(dialog))
    alone, inside = (as_alice.get(url(dialog, f"{compacted.removed[0]}/"), headers=headers) for headers in ({}, HTMX))

    assert "Show all 5,010 characters" in shown.text
    assert long not in shown.text
    assert alone["Content-Type"] == "text/plain; charset=utf-8"
    assert alone.content.decode() == long
    assert Page(inside.content.decode()).text.strip() == long


def test_a_message_is_brought_back_and_the_page_says_so(
    as_alice: Client, dialog: Dialog, history: list[Message], compacted: CompactionRun
) -> None:
    response = as_alice.post(
        f"/dialogs/{dialog.pk}/messages/{history[3].pk}/bring-back/", {"next": url(dialog, "?q=answer")}, follow=True
    )

    found = Page(response.content.decode())
    assert response.redirect_chain == [(url(dialog, "?q=answer"), 303)]
    assert "Brought back" in words(found)
    assert items(found) == [history[5].pk]
    assert history[3].content in sent(dialog)


def test_a_lost_line_is_brought_back_and_is_lost_no_more(
    as_alice: Client, dialog: Dialog, history: list[Message], compacted: CompactionRun
) -> None:
    as_alice.post(f"/dialogs/{dialog.pk}/messages/{history[5].pk}/bring-back/", {"text": "Answer 2"})

    assert any(model_view.is_quote(text) and "Answer 2" in text for text in sent(dialog))
    text = words(page(as_alice, url(dialog)))
    assert "2 details are only here · 2 still stand in the context" in text


def test_where_no_detail_is_lost_nothing_warns(as_alice: Client, dialog: Dialog, compacted: CompactionRun) -> None:
    compacted.losses = [loss | {"kept": True} for loss in compacted.losses]
    compacted.save()

    text = words(page(as_alice, url(dialog)))

    assert "All 4 details still stand in the context" in text
    assert "only here" not in text


def test_while_the_agent_answers_it_is_refused_in_words(
    as_alice: Client, dialog: Dialog, history: list[Message], compacted: CompactionRun
) -> None:
    post_message(dialog=dialog, content="Go on")
    there = f"/dialogs/{dialog.pk}/messages/{history[3].pk}/bring-back/"

    plain, htmx = as_alice.post(there, follow=True), as_alice.post(there, headers=HTMX)

    assert "The agent is still answering" in words(Page(plain.content.decode()))
    assert (htmx.status_code, htmx["Content-Type"]) == (422, "text/plain; charset=utf-8")


def test_from_the_transcript_the_socket_brings_what_changed(
    as_alice: Client, dialog: Dialog, history: list[Message], compacted: CompactionRun
) -> None:
    response = as_alice.post(f"/dialogs/{dialog.pk}/messages/{history[3].pk}/bring-back/", headers=HTMX)

    assert response.status_code == 204
    assert Course.objects.get(dialog=dialog).head_run_id != compacted.pk


def test_a_message_of_another_dialog_is_not_there(as_alice: Client, dialog: Dialog, compacted: CompactionRun) -> None:
    other = Dialog.objects.create(owner=dialog.owner, agent=dialog.agent, llm=dialog.llm, active_at=dialog.active_at)

    assert as_alice.get(url(other, f"{compacted.removed[0]}/")).status_code == 404
    response = as_alice.post(f"/dialogs/{other.pk}/messages/{compacted.removed[0]}/bring-back/", headers=HTMX)
    assert response.status_code == 422
