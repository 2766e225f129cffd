"""A view that is carried over to a changed history: what both have stays as it was, what is new stands as said."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from dialogs.api.writes import client_views
from dialogs.api.writes.api_keys import create_key
from dialogs.context.border import chat_request, read_context
from dialogs.models import LLM, Agent, ApiKey, Dialog, Message, ToolCall
from dialogs.transcript.model_view import Entry, dump, load
from dialogs.transcript.reads.path import course_branch
from health.compaction.reading.ledger import Entry as Stated
from health.compaction.reading.ledger import EntryKind
from health.compaction.reading.ledger_page import page, read
from health.models import CompactionRun
from tests.client_dialogs import answered, ask, assistant, result, user
from tests.dialogs.compaction_runs import an_applied_run

pytestmark = pytest.mark.django_db

ANSWER = "All is well here, as it was, and there is nothing else to tell."
START = [user("Look around."), assistant(None, ("c1", "ls")), result("c1", "a b c"), assistant("Three files.")]
OLD = [*START, user("The notes:\none"), assistant("I see."), user("And now? Say it in one sentence.")]


@pytest.fixture
def key(alice: User) -> ApiKey:
    return create_key(owner=alice, name="laptop")[0]


@pytest.fixture
def dialog(key: ApiKey, llm: LLM) -> Dialog:
    """Its history was compacted: the round is gone, the first answer is shorter."""
    dialog = ask(key, llm, *OLD)
    first, call, listed, told, *rest = course_branch(dialog.current_leaf)
    view = [
        Entry(message_id=first.pk),
        Entry(content="[Omitted 2 messages]", kind="placeholder", covers=(call.pk, listed.pk)),
        Entry(message_id=told.pk, content="Three."),
        *(Entry(message_id=one.pk) for one in rest),
    ]
    an_applied_run(dialog, view=dump(view), removed=[call.pk, listed.pk])
    answered(dialog, ANSWER)
    return dialog


def sent(dialog: Dialog) -> list[str]:
    dialog.refresh_from_db()
    found = Dialog.objects.select_related("agent", "llm__provider", "client", "current_leaf").get(pk=dialog.pk)
    return [one.content for one in chat_request(read_context(found, course_branch(found.current_leaf))).messages]


def asked_again(key: ApiKey, llm: LLM, *messages: dict[str, Any]) -> list[str]:
    found = sent(ask(key, llm, *messages))
    assert Dialog.objects.count() == 1
    return found


def test_a_message_that_moved_and_changed_stands_once_and_the_rest_as_compacted(
    dialog: Dialog, key: ApiKey, llm: LLM
) -> None:
    said = [OLD[-1], assistant(ANSWER)]
    notes = [user("The notes:\none\ntwo"), assistant("I see.")]

    found = asked_again(key, llm, *START, *said, *notes, user("Go on."))

    assert found == [
        "Look around.\n\n[Omitted 2 messages]",
        "Three.",
        OLD[-1]["content"],
        ANSWER,
        "The notes:\none\ntwo",
        "I see.",
        "Go on.",
    ]
    assert CompactionRun.objects.filter(trigger="carried").count() == 1


def test_the_next_request_needs_no_view_of_its_own(dialog: Dialog, key: ApiKey, llm: LLM) -> None:
    said = [OLD[-1], assistant(ANSWER)]
    asked_again(key, llm, *START, *said, user("The notes:\ntwo"), assistant("I see."), user("Go on."))
    answered(Dialog.objects.get(), "Gone on.")

    found = asked_again(key, llm, *START, *said, user("Something else."))

    assert found[:3] == ["Look around.\n\n[Omitted 2 messages]", "Three.", OLD[-1]["content"]]
    assert CompactionRun.objects.filter(trigger="carried").count() == 1


def test_a_round_with_another_result_comes_back_whole(dialog: Dialog, key: ApiKey, llm: LLM) -> None:
    changed = [OLD[0], OLD[1], result("c1", "a b c d"), *OLD[3:]]

    found = asked_again(key, llm, *changed, assistant(ANSWER), user("Go on."))

    assert found[:4] == ["Look around.", "", "a b c d", "Three."]


def ledger_of(*said: tuple[Message, str]) -> Entry:
    lines = [Stated(kind=EntryKind.RULE, text=text, source_id=str(one.pk)) for one, text in said]
    return Entry(content=page(lines, left_out=3), kind="summary", covers=tuple(one.pk for one, _text in said))


def written(dialog: Dialog, *entries: Entry) -> None:
    """Into the view that holds, before all else."""
    run = CompactionRun.objects.get()
    run.view = dump([*entries, *load(run.view)])
    run.save()


def test_a_rule_that_the_client_took_out_of_its_history_is_carried_no_more(
    dialog: Dialog, key: ApiKey, llm: LLM
) -> None:
    first, _call, _listed, _told, notes, *_rest = course_branch(dialog.current_leaf)
    written(dialog, ledger_of((first, "Never sail at night."), (notes, "Always take the lamp.")))

    found = asked_again(key, llm, *START, OLD[-1], assistant(ANSWER), user("Go on."))

    assert "Never sail at night." in found[0]
    assert "Always take the lamp." not in "".join(found)
    assert "[Omitted 2 messages]" in found[0]


def test_a_line_of_the_ledger_is_carried_by_the_new_name_of_its_message() -> None:
    """The client may change its history again, and then the old name says nothing."""
    old, new, newest = (Message(pk=pk) for pk in (7, 107, 207))
    first = client_views._still_said(ledger_of((old, "Always take the lamp.")), {old.pk: new})

    second = client_views._still_said(first, {new.pk: newest})

    assert [(one.text, one.source_id) for one in read(second.content or "")] == [("Always take the lamp.", "207")]


def test_a_summary_that_tells_of_what_the_client_took_out_is_carried_no_more(
    dialog: Dialog, key: ApiKey, llm: LLM
) -> None:
    first, _call, _listed, _told, notes, *_rest = course_branch(dialog.current_leaf)
    written(dialog, Entry(content="They speak of lamps.", kind="summary", covers=(first.pk, notes.pk)))

    found = asked_again(key, llm, *START, OLD[-1], assistant(ANSWER), user("Go on."))

    assert "lamps" not in "".join(found)
    assert found[:2] == ["Look around.", ""]


def test_a_view_of_which_too_much_is_gone_is_left_behind(dialog: Dialog, key: ApiKey, llm: LLM) -> None:
    history = [user("In short: three files."), assistant("I see."), OLD[-1], assistant(ANSWER), user("Go on.")]

    found = asked_again(key, llm, *history)

    assert found == [one["content"] for one in history]
    assert not CompactionRun.objects.filter(trigger="carried").exists()


# What a client brings along: each result beside the call that it answers, however many there are.


def rounds(count: int, call_id: str) -> list[dict[str, object]]:
    said = [user("Go on.")]
    for number in range(count):
        name = call_id.format(number)
        said += [assistant(f"Round {number}", (name, "weather")), result(name, f"rain {number}")]
    return said


@pytest.mark.parametrize("call_id", ["c{}", "again"], ids=["ids-of-their-own", "one-id-for-all"])
def test_each_result_stands_beside_its_call(key: ApiKey, agent: Agent, llm: LLM, call_id: str) -> None:
    ask(key, llm, *rounds(12, call_id), agent=agent)

    calls = ToolCall.objects.select_related("message", "result_message").order_by("message__seq")
    found = [(call.message.content, call.result_message.content) for call in calls if call.result_message]
    assert found == [(f"Round {number}", f"rain {number}") for number in range(12)]
    assert {call.status for call in calls} == {ToolCall.Status.DONE}


def test_a_result_stands_beside_the_newest_call_before_it(key: ApiKey, agent: Agent, llm: LLM) -> None:
    said = [user("Go on."), assistant("First", ("c", "weather")), assistant("Second", ("c", "weather"))]

    ask(key, llm, *said, result("c", "rain"), assistant("Third", ("c", "weather")), agent=agent)

    (call,) = ToolCall.objects.select_related("message").exclude(result_message=None)
    assert call.message.content == "Second"


def test_many_results_cost_hardly_more_queries_than_few(key: ApiKey, agent: Agent, llm: LLM) -> None:
    """A dialog that is looked through for each of them takes a minute where it is long."""
    counts = []
    for number in (2, 60):
        with CaptureQueriesContext(
            connection,
        ) as asked:
            ask(key, llm, *rounds(number, f"{number}-{{}}"), agent=agent)
        counts.append(len(asked))

    few, many = counts
    # Rows are inserted in portions, and a long history is looked up in two, and as the end of a longer one.
    assert many <= few + 5
