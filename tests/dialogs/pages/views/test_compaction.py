"""Compaction in the transcript: actions by POST, the forms that ask first."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from dialogs.compaction.work import perform
from dialogs.compaction.writes.compaction import cancel_run, skip_run
from dialogs.compaction.writes.manual_compaction import request
from dialogs.llms.guard import guard_of
from dialogs.models import LLM, Course, Dialog, LlmBounds, Message, MessageMark
from dialogs.models.message import MessageOrigin, Role
from dialogs.transcript.writes.dialog_row import add_message
from dialogs.turns.writes.messages import post_message
from health.compaction.terms.reasons import Reason, Why
from health.models import CompactionRun
from tests.builders import an_answer
from tests.dialogs.compacting_builders import RULE, a_history, estimated, guard
from tests.dialogs.compaction_runs import a_run, an_applied_run
from tests.dialogs.pages.views.pages import HTMX, Page, menus, page

BOTH = pytest.mark.parametrize("headers", [{}, HTMX], ids=["plain", "htmx"])


@pytest.fixture
def draft(alice: User, dialog: Dialog, history: list[Message]) -> CompactionRun:
    run = request(dialog=dialog, by=alice, preview=True)
    perform(run.pk, embedder="static")
    return CompactionRun.objects.get(pk=run.pk)


def url(dialog: Dialog, action: str) -> str:
    return f"/dialogs/{dialog.pk}/{action}/"


def written(run: CompactionRun) -> int:
    return next(at for at, entry in enumerate(run.view) if "message" not in entry)


# --- Compacting ---------------------------------------------------------------------------------


@pytest.mark.usefixtures("history")
@BOTH
def test_compact_now_queues_a_run(as_alice: Client, dialog: Dialog, headers: dict[str, str]) -> None:
    response = as_alice.post(url(dialog, "compaction"), {"focus": "The rotor", "preview": "on"}, headers=headers)

    run = CompactionRun.objects.get()
    assert response.status_code == (204 if headers else 302)
    assert (run.trigger, run.focus, run.is_draft, run.requested_by) == ("manual", "The rotor", True, dialog.owner)


@pytest.mark.usefixtures("history")
def test_compact_now_pressed_twice_makes_one_run_and_says_so(as_alice: Client, dialog: Dialog) -> None:
    first, second = [as_alice.post(url(dialog, "compaction"), headers=HTMX) for _press in range(2)]

    assert (first.status_code, second.status_code) == (204, 422)
    assert "under way already" in second.content.decode()
    assert CompactionRun.objects.count() == 1


def test_a_refusal_brings_the_form_back_as_it_was_typed_and_tells_htmx_why(as_alice: Client, dialog: Dialog) -> None:
    response = as_alice.post(url(dialog, "compaction"), {"focus": "The rotor", "preview": "on"})
    told = as_alice.post(url(dialog, "compaction/reset"), headers=HTMX)

    text = response.content.decode()
    assert (response.status_code, told.status_code) == (422, 422)
    assert all(words in text for words in ("nothing to compact yet", "The rotor", " checked"))
    assert told.content.decode() == "There is nothing to compact yet."


@pytest.mark.usefixtures("history")
@BOTH
def test_a_reset_asks_first(as_alice: Client, dialog: Dialog, headers: dict[str, str]) -> None:
    response = as_alice.get(url(dialog, "compaction/reset"), headers=headers)
    assert "Reset Agent Chat" in response.content.decode()
    assert not CompactionRun.objects.exists()

    as_alice.post(url(dialog, "compaction/reset"), headers=headers)

    assert CompactionRun.objects.get().trigger == "reset"


def test_compacting_up_to_a_message(as_alice: Client, dialog: Dialog, history: list[Message]) -> None:
    as_alice.post(url(dialog, f"messages/{history[9].pk}/compact"), headers=HTMX)

    assert CompactionRun.objects.get().up_to_seq == history[9].seq


def test_undo_and_redo(as_alice: Client, alice: User, dialog: Dialog, history: list[Message]) -> None:
    run = request(dialog=dialog, by=alice)
    perform(run.pk, embedder="static")

    as_alice.post(url(dialog, f"compactions/{run.pk}/undo"), headers=HTMX)
    assert CompactionRun.objects.get().status == "undone"
    again = as_alice.post(url(dialog, f"compactions/{run.pk}/undo"), headers=HTMX)
    assert (again.status_code, "undone already" in again.content.decode()) == (422, True)
    as_alice.post(url(dialog, f"compactions/{run.pk}/redo"), headers=HTMX)
    again = as_alice.post(url(dialog, f"compactions/{run.pk}/redo"), headers=HTMX)
    assert (again.status_code, "is not undone" in again.content.decode()) == (422, True)

    assert Course.objects.get().head_run == run
    assert len(history) == 24


def test_a_run_that_nobody_has_begun_is_cancelled_at_once(as_alice: Client, dialog: Dialog) -> None:
    run = a_run(dialog, status="queued")

    as_alice.post(url(dialog, f"compactions/{run.pk}/cancel"), headers=HTMX)

    assert CompactionRun.objects.get().status == "cancelled"


# --- Previews -----------------------------------------------------------------------------------


def test_a_preview_is_applied_with_the_words_in_the_form(
    as_alice: Client, dialog: Dialog, draft: CompactionRun
) -> None:
    place = written(draft)

    as_alice.post(url(dialog, f"compactions/{draft.pk}/apply"), {f"text-{place}": "In my words."}, headers=HTMX)

    run = CompactionRun.objects.get()
    assert run.status == "applied"
    assert run.view[place]["content"] == "In my words."
    assert Course.objects.get().head_run == run


def test_a_preview_is_saved_its_words_are_escaped_and_it_is_discarded(
    as_alice: Client, dialog: Dialog, draft: CompactionRun
) -> None:
    place, words = written(draft), "</textarea><script>alert(1)</script>"

    as_alice.post(url(dialog, f"compactions/{draft.pk}/edit"), {f"text-{place}": words, "text-x": "?"})

    run = CompactionRun.objects.get()
    assert (run.status, run.view[place]["content"]) == ("draft", words)
    found = page(as_alice, f"/dialogs/{dialog.pk}/")
    assert found.offences == []
    # It is decided on from its card too.
    buttons = {str(attrs.get("id")): attrs for tag, attrs in found.tags if tag == "button"}
    forms = [attrs for tag, attrs in found.tags if attrs.get("hx-include") == f"#draft-{draft.pk}"]
    assert forms[0]["action"] == url(dialog, f"compactions/{draft.pk}/apply")
    assert buttons["compaction-discard"]["formaction"] == url(dialog, f"compactions/{draft.pk}/discard")

    as_alice.post(url(dialog, f"compactions/{draft.pk}/discard"), headers=HTMX)

    assert CompactionRun.objects.get().status == "cancelled"
    assert Course.objects.get().head_run is None


@BOTH
def test_a_task_that_is_done_is_followed_by_the_question(
    as_alice: Client, dialog: Dialog, history: list[Message], headers: dict[str, str]
) -> None:
    task = history[0].pk
    as_alice.post(url(dialog, f"messages/{task}/priority"), {"priority": "1"}, headers=HTMX)
    assert "first" in menus(page(as_alice, f"/dialogs/{dialog.pk}/"))[task].states

    found = as_alice.post(url(dialog, f"messages/{task}/done"), headers=headers, follow=True)

    assert "The task is done. Begin afresh?" in found.content.decode()
    assert f'action="{url(dialog, "compaction/reset")}"' in found.content.decode()
    assert "first" not in menus(page(as_alice, f"/dialogs/{dialog.pk}/"))[task].states


@BOTH
def test_a_task_that_is_none_cannot_be_done(
    as_alice: Client, dialog: Dialog, history: list[Message], headers: dict[str, str]
) -> None:
    found = as_alice.post(url(dialog, f"messages/{history[0].pk}/done"), headers=headers)

    assert found.status_code == 422
    assert "Only the task of a P1 message can be done." in found.content.decode()


def test_a_draft_of_the_guards_says_that_the_request_waits(as_alice: Client, dialog: Dialog) -> None:
    a_run(dialog, status="draft", trigger="pre_request")

    assert "The request waits for it." in page(as_alice, f"/dialogs/{dialog.pk}/").text


# --- Marks --------------------------------------------------------------------------------------


def test_a_message_is_pinned_and_tagged(as_alice: Client, dialog: Dialog, history: list[Message]) -> None:
    there = f"messages/{history[2].pk}"

    as_alice.post(url(dialog, f"{there}/pin"), {"pinned": "1"}, headers=HTMX)
    as_alice.post(url(dialog, f"{there}/priority"), {"priority": "2", "area": "Calendar"}, headers=HTMX)

    mark = MessageMark.objects.get()
    assert (mark.message, mark.pinned, mark.priority, mark.area) == (history[2], True, 2, "Calendar")
    shown = page(as_alice, f"/dialogs/{dialog.pk}/")
    assert "P2: Calendar" in shown.text
    assert "pinned" in menus(shown)[history[2].pk].states


# --- What is shown ------------------------------------------------------------------------------


def test_the_page_shows_a_compaction_with_all_that_can_be_done(
    as_alice: Client, alice: User, dialog: Dialog, history: list[Message]
) -> None:
    run = request(dialog=dialog, by=alice)
    perform(run.pk, embedder="static")

    shown = page(as_alice, f"/dialogs/{dialog.pk}/")

    assert "Context compacted" in shown.text
    assert "tokens ·" in " ".join(shown.text.split())
    assert "Undo" in shown.text
    assert "no longer seen" in shown.text
    assert shown.offences == []
    assert history


def test_a_failure_says_why_and_what_to_do(as_alice: Client, dialog: Dialog) -> None:
    a_run(dialog, status="failed", reason="The chain came to 9,000 tokens.")

    shown = page(as_alice, f"/dialogs/{dialog.pk}/").text

    assert "Compaction failed" in shown
    assert "The chain came to 9,000 tokens." in shown
    assert "Unpin some, raise the limit" in shown


@BOTH
def test_what_was_written_and_what_the_model_saw_can_be_read_and_scrolled_by_keyboard(
    as_alice: Client, alice: User, dialog: Dialog, history: list[Message], headers: dict[str, str]
) -> None:
    run = request(dialog=dialog, by=alice, focus="<b>The rotor</b>")
    perform(run.pk, embedder="static")

    summary = page(as_alice, url(dialog, f"compactions/{run.pk}/summary"), headers=headers)
    seen = page(as_alice, url(dialog, f"compactions/{run.pk}/seen"), headers=headers).text

    assert "<b>The rotor</b>" in summary.text
    assert "left out" in summary.text
    ids = {attrs["id"] for _tag, attrs in summary.tags if "id" in attrs}
    texts = [attrs for tag, attrs in summary.tags if tag == "p" and attrs.get("role") == "group"]
    assert texts
    assert all(text["tabindex"] == "0" and text["aria-labelledby"] in ids for text in texts)
    assert history[0].content in seen
    assert "≈" in seen


def test_an_answer_that_was_cut_is_shown_as_one(as_alice: Client, dialog: Dialog) -> None:
    post_message(dialog=dialog, content="Tell me")
    half = an_answer(dialog, "Once upon", finish_reason="compaction")
    asked = MessageOrigin.CONTINUATION
    add_message(dialog, role=Role.USER, origin=asked, content="Go on from there.", parent=dialog.current_leaf)
    dialog.save()
    an_applied_run(dialog, trigger="stream", view=[{"message": half.pk}])
    an_answer(dialog, " a time.")

    shown = page(as_alice, f"/dialogs/{dialog.pk}/")

    rows = [str(attrs["class"]) for _tag, attrs in shown.tags if "message-row" in str(attrs.get("class"))]
    assert [row.split()[-1] for row in rows] == ["removed", "to-be-continued", "continuing"]
    # Two feet: of the question, and of the whole answer, which is what a press on "Copy" takes.
    assert sum("message-foot" in str(attrs.get("class")) for _tag, attrs in shown.tags) == 2
    assert "Once upon a time." in shown.text
    assert "Context compacted, continuing..." in shown.text
    assert "Go on from there." not in shown.text
    assert "stopped" not in shown.text


def test_a_message_of_which_the_model_sees_less_says_so(
    as_alice: Client, dialog: Dialog, history: list[Message]
) -> None:
    whole = [{"message": message.pk} for message in history[1:]]
    an_applied_run(dialog, view=[{"message": history[0].pk, "content": "Less."}, *whole])

    shown = page(as_alice, f"/dialogs/{dialog.pk}/").text

    assert shown.count("The model sees a shortened version of this.") == 1


# --- Nothing to do about it ---------------------------------------------------------------------


def test_the_form_says_how_much_there_is_and_how_much_has_room(as_alice: Client, dialog: Dialog) -> None:
    a_history(dialog, pairs=1)
    said = " ".join(page(as_alice, url(dialog, "compaction")).text.split())
    assert f"Now ≈{estimated(dialog):,} of 90,000 tokens. The window has 100,000." in said

    LLM.objects.update(context_length=None, context_length_source="")

    unknown = f"≈{estimated(dialog):,} tokens. The window is unknown."
    assert f"Now {unknown}" in " ".join(page(as_alice, url(dialog, "compaction")).text.split())
    shown, tone = compacted_now(as_alice, dialog)
    assert tone == "normal"
    assert f"Nothing to compact: {unknown}" in shown.text


def compacted_now(client: Client, dialog: Dialog) -> tuple[Page, str]:
    """What the page shows after *Compact now*, and the tone of its card."""
    client.post(url(dialog, "compaction"))
    perform(CompactionRun.objects.latest("pk").pk, embedder="static")
    shown = page(client, f"/dialogs/{dialog.pk}/")
    return shown, next(str(attrs["data-tone"]) for _tag, attrs in shown.tags if "data-tone" in attrs)


def dividers(shown: Page) -> list[dict[str, str | None]]:
    return [attrs for tag, attrs in shown.tags if tag == "section" and "divider" in str(attrs.get("class"))]


def test_a_short_dialog_has_nothing_to_compact_and_the_card_shows_limit_and_window(
    as_alice: Client, dialog: Dialog
) -> None:
    a_history(dialog, pairs=1)
    said = f"Nothing to compact: ≈{estimated(dialog):,} of 90,000 tokens."

    shown, tone = compacted_now(as_alice, dialog)

    assert tone == "normal"
    assert shown.text.count(said) == 2, "once in the card, once between the messages"
    assert [line["class"] for line in dividers(shown)] == ["divider divider-thin"]
    assert "Try again" not in shown.text
    assert "Limit90,000Window100,000" in "".join(shown.text.split())


def test_in_an_unknown_window_compact_now_keeps_to_the_largest_prompt_that_was_read(
    as_alice: Client, dialog: Dialog
) -> None:
    a_history(dialog, pairs=12)
    LLM.objects.update(context_length=None, context_length_source="")
    read = estimated(dialog) - 500
    LlmBounds.objects.create(llm=dialog.llm, accepted=read, accepted_at=timezone.now())

    assert f"Now ≈{estimated(dialog):,} of {read:,} tokens." in " ".join(
        page(as_alice, url(dialog, "compaction")).text.split()
    )
    shown, tone = compacted_now(as_alice, dialog)

    assert tone == "normal"
    assert f"Limit{read:,}" in "".join(shown.text.split())
    assert estimated(dialog) <= read


@pytest.mark.parametrize(
    ("needed", "lines"),
    [
        ((3300, 3310, 3400), 1),
        ((3300, 3310, 2300), 2),  # something changed: half of the pins are gone
    ],
)
def test_that_compaction_cannot_free_more_is_said_once_until_something_changes(
    as_alice: Client, dialog: Dialog, needed: tuple[int, ...], lines: int
) -> None:
    a_history(dialog, pairs=1)
    guard(dialog)
    row = Dialog.objects.select_related("current_leaf", "agent", "llm").get(pk=dialog.pk)
    found = guard_of(row)
    assert found is not None
    for tokens in needed:
        why = Reason(Why.CANNOT_FREE_MORE, {"needed": tokens, "limit": 3500, "shares": (), "ways": ()})
        skip_run(row, guard=found, trigger="pre_request", why=Reason(Why.STUCK, {"why": why}), tokens=tokens)

    shown = page(as_alice, f"/dialogs/{dialog.pk}/")

    assert [line["aria-label"] for line in dividers(shown)] == ["Compaction cannot free more"] * lines


def test_that_compaction_cannot_free_more_is_one_calm_line(as_alice: Client, dialog: Dialog) -> None:
    a_history(dialog, pairs=1)
    guard(dialog)
    row = Dialog.objects.select_related("current_leaf", "agent", "llm").get(pk=dialog.pk)
    found = guard_of(row)
    assert found is not None
    because = Reason(Why.STUCK, {"why": Reason(Why.REQUEST_TOO_LARGE, {"tokens": 3300, "limit": 3500})})
    skip_run(row, guard=found, trigger="pre_request", why=because, tokens=3300)

    shown = page(as_alice, f"/dialogs/{dialog.pk}/")

    (line,) = dividers(shown)
    assert (line["class"], line["aria-label"]) == ("divider divider-thin", "Compaction cannot free more")
    assert [attrs["data-tone"] for _tag, attrs in shown.tags if "data-tone" in attrs] == ["normal"]
    assert "The request needs ≈3,300 tokens" in shown.text


# Changing to an LLM with less room: what does not fit is said first, and compacting for it offered.


@pytest.fixture
def small(dialog: Dialog) -> LLM:
    """Room for a part of what the dialog has; its own LLM has plenty."""
    guard(dialog, limit=90_000)
    a_history(dialog, pairs=24)
    dialog.refresh_from_db()
    return LLM.objects.create(provider=dialog.llm.provider, model_id="small", context_length=4096)


def change(client: Client, dialog: Dialog, llm: LLM, **fields: str) -> Page:
    response = client.post(f"/dialogs/{dialog.pk}/llm/", {"llm": llm.pk, **fields}, follow=True)
    dialog.refresh_from_db()
    return Page(response.content.decode())


def test_what_does_not_fit_is_said_before_anything_is_changed(as_alice: Client, dialog: Dialog, small: LLM) -> None:
    said = " ".join(change(as_alice, dialog, small).text.split())

    assert re.search(r"has room for 3,687 tokens\. The model sees ≈[\d,]+ now: ≈[\d,]+ too many\.", said)
    assert "Compact first, then change" in said
    assert dialog.llm_id != small.pk


def test_it_is_compacted_by_the_old_one_and_changed_then(as_alice: Client, dialog: Dialog, small: LLM) -> None:
    old = dialog.llm_id
    change(as_alice, dialog, small, how="compact")
    assert dialog.llm_id == old

    run = CompactionRun.objects.get()
    perform(run.pk, embedder="static")

    run.refresh_from_db()
    dialog.refresh_from_db()
    assert (run.status, run.limit_tokens) == ("applied", 3687)
    assert (run.estimated_after or 0) <= 0.8 * 3687
    assert (dialog.llm, dialog.llm_after) == (small, None)
    assert RULE in str(run.view) or RULE in str(run.ledger)


def test_a_compaction_that_is_cancelled_changes_nothing(
    as_alice: Client, alice: User, dialog: Dialog, small: LLM
) -> None:
    old = dialog.llm_id
    change(as_alice, dialog, small, how="compact")

    cancel_run(dialog=dialog, run_id=CompactionRun.objects.get().pk)

    dialog.refresh_from_db()
    assert (dialog.llm_id, dialog.llm_after) == (old, None)


def test_who_changes_now_is_not_asked_again(as_alice: Client, dialog: Dialog, small: LLM) -> None:
    change(as_alice, dialog, small, how="now")

    assert dialog.llm == small
    assert not CompactionRun.objects.exists()


def test_a_larger_one_is_taken_at_once(as_alice: Client, dialog: Dialog, small: LLM) -> None:
    LLM.objects.filter(pk=small.pk).update(context_length=200_000)

    change(as_alice, dialog, small)

    assert dialog.llm == small


def test_where_compaction_is_off_it_is_said_what_comes_of_it(as_alice: Client, dialog: Dialog, small: LLM) -> None:
    Dialog.objects.update(compaction="off")

    assert "its first answer will be refused" in change(as_alice, dialog, small).text
