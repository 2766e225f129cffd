"""The first page: who needs a person comes first, what each dialog is doing, and how little is asked for it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from dialogs.models import (
    LLM,
    Agent,
    ApiKey,
    AutonomousRun,
    ClientConversation,
    Course,
    Dialog,
    Generation,
    Question,
    ToolCall,
)
from dialogs.pages.reads.dashboard import DashboardRow, overviews, shown, strip
from dialogs.turns.writes.messages import post_message
from health.models import CompactionRun, HealthReading
from tests.builders import a_generation, an_answer
from tests.dialogs.compaction_runs import an_applied_run
from tests.dialogs.conftest import Maker
from tests.dialogs.pages.views.pages import page


def answered(dialog: Dialog, level: str = "healthy", *, prompt_tokens: int = 900, window: int = 1000) -> Generation:
    """A message, an answer, and what was measured of it."""
    post_message(dialog=dialog, content="Which index?")
    made = an_answer(dialog, "One over **both** columns.", prompt_tokens=prompt_tokens).generation
    HealthReading.objects.create(
        generation=made,
        level=level,
        prompt_tokens=prompt_tokens,
        context_window=window,
        hard_util=prompt_tokens / window,
    )
    return made


def asks(dialog: Dialog, text: str = "Which colour?") -> None:
    dialog.refresh_from_db()
    call = ToolCall.objects.create(message=dialog.current_leaf, position=0, call_id="c", name="ask_human")
    Question.objects.create(dialog=dialog, tool_call=call, text=text)


def compacted(dialog: Dialog, *, before: int = 2600, after: int = 900, **fields: Any) -> CompactionRun:
    dialog.refresh_from_db()
    values = {"status": "applied", "trigger": "pre_request", "limit_tokens": 3000, "turn": 1, "through_seq": 1}
    return CompactionRun.objects.create(
        dialog=dialog,
        course=Course.objects.get(dialog=dialog),
        leaf=dialog.current_leaf,
        estimated_before=before,
        estimated_after=after,
        **(values | fields),
    )


def row(dialog: Dialog) -> DashboardRow:
    (found,) = shown(overviews(Dialog.objects.filter(pk=dialog.pk)))
    return found


def test_who_needs_a_person_comes_first(a_dialog: Maker) -> None:
    names = ("rests", "caution", "running", "critical", "failed", "paused", "waits", "rests since just now")
    made = {name: a_dialog(name) for name in names}
    for at, (name, dialog) in enumerate(made.items()):
        answered(dialog, name if name in ("caution", "critical") else "healthy")
        Dialog.objects.filter(pk=dialog.pk).update(title=name, active_at=timezone.now() + timedelta(minutes=at))
    asks(made["waits"])
    Dialog.objects.filter(pk=made["paused"].pk).update(paused_by="loop")
    made["failed"].refresh_from_db()
    a_generation(made["failed"], status="failed", error_code="provider_unreachable")
    Dialog.objects.filter(pk=made["running"].pk).update(wake_seq=99)

    found = overviews(Dialog.objects.all())

    assert [one.dialog.title for one in shown(found)] == [
        *("waits", "paused", "failed", "critical", "running", "caution", "rests since just now", "rests"),
    ]
    assert list(strip(found)) == [
        *(("doing", "waiting", 1), ("doing", "failed", 1), ("doing", "paused", 1), ("doing", "running", 1)),
        *(("level", "critical", 1), ("level", "caution", 1), ("level", "healthy", 6)),
    ]


def test_a_row_tells_the_last_words_and_what_its_dialog_waits_for(dialog: Dialog) -> None:
    answered(dialog)
    assert row(dialog).last_words == "One over **both** columns."

    asks(dialog, "Which\ncolour?")
    assert row(dialog).doing == "waits for your answer: Which colour?"


def test_a_row_tells_how_far_an_autonomous_run_is(dialog: Dialog) -> None:
    answered(dialog)
    AutonomousRun.objects.create(dialog=dialog, goal="Tidy", max_generations=200, generations=41, first_course=1)
    Dialog.objects.filter(pk=dialog.pk).update(paused_by="person")

    assert row(dialog).doing == "paused by a person · generation 41 of 200, course 1"


def test_a_row_tells_how_far_a_compaction_is_and_then_what_it_freed(dialog: Dialog) -> None:
    answered(dialog)
    run = compacted(dialog, status="running", tokens_now=1140)
    assert row(dialog).doing == "compacting, now at 38 % of its limit"
    assert row(dialog).freed is None

    run.status = "applied"
    run.save()

    freed = row(dialog).freed
    assert freed is not None
    assert (freed.before, freed.after, freed.tokens) == (2600, 900, 1700)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"wake_seq": 99}, "answering"),
        ({"wake_seq": 99, "place_in_line": 2}, "number 2 in line"),
        ({"paused_by": "rounds"}, "paused by too many tool rounds"),
        ({"paused_by": "person"}, ""),  # holds nothing back
    ],
)
def test_a_row_tells_what_is_going_on(dialog: Dialog, fields: dict[str, Any], words: str) -> None:
    answered(dialog)
    Dialog.objects.filter(pk=dialog.pk).update(**fields)

    assert row(dialog).doing == words


def test_a_failure_is_told_until_there_is_an_answer(dialog: Dialog) -> None:
    answered(dialog)
    dialog.refresh_from_db()
    a_generation(dialog, status="failed", error_code="authentication_refused")
    assert row(dialog).doing == "The provider refused the key. An admin must set a valid one."

    answered(dialog)

    assert row(dialog).doing == ""


def test_a_level_of_a_context_that_was_left_is_unknown(dialog: Dialog, alice: User) -> None:
    answered(dialog, "critical")
    assert row(dialog).glance.level == "critical"

    LLM.objects.update(context_length=900)
    assert (row(dialog).glance.level, row(dialog).meter.stale) == ("unknown", "other_window")

    dialog.refresh_from_db()
    an_applied_run(dialog)

    assert (row(dialog).glance.level, row(dialog).meter.stale) == ("unknown", "compacted")
    other = LLM.objects.create(provider=dialog.llm.provider, model_id="other")
    Dialog.objects.update(llm=other)
    assert (row(dialog).glance.level, row(dialog).meter.stale) == ("unknown", "llm_changed")


def test_a_clients_conversation_stands_among_them_with_its_clients_name(
    as_alice: Client, alice: User, a_dialog: Maker
) -> None:
    theirs = a_dialog("From a client")
    key = ApiKey.objects.create(owner=alice, name="Open WebUI", prefix="dk", sha256="x")
    ClientConversation.objects.create(dialog=theirs, api_key=key, model="tiny")
    Dialog.objects.filter(pk=theirs.pk).update(is_client_driven=True)
    a_dialog("My own")

    every, cut = page(as_alice, "/").text, page(as_alice, f"/?client={key.pk}").text

    assert "Open WebUI" in every
    assert "My own" in every
    assert "From a client" in cut
    assert "My own" not in cut


def test_the_list_is_cut_by_level_agent_and_llm(as_alice: Client, a_dialog: Maker, agent: Agent) -> None:
    other = LLM.objects.create(provider=agent.llm.provider, model_id="other")
    zoe = Agent.objects.create(name="Zoe", slug="zoe", llm=other)
    first, second = a_dialog("The first"), a_dialog("The second")
    answered(first, "critical")
    Dialog.objects.filter(pk=first.pk).update(title="The first")
    Dialog.objects.filter(pk=second.pk).update(agent=zoe, llm=other)

    for query, title, hidden in (
        ("level=critical", "The first", "The second"),
        (f"agent={zoe.pk}", "The second", "The first"),
        (f"llm={other.pk}&doing=nonsense&client=x", "The second", "The first"),
    ):
        text = page(as_alice, f"/?{query}").text
        assert title in text
        assert hidden not in text
        assert "Show all again" in text


def test_the_strip_is_of_links_that_cut_the_list_and_give_it_back(as_alice: Client, dialog: Dialog) -> None:
    answered(dialog, "critical")

    assert "/?level=critical" in page(as_alice, "/").links()
    assert "1 critical" in " ".join(page(as_alice, "/").text.split())
    assert "/" in page(as_alice, "/?level=critical").links()


def test_what_is_put_away_stands_newest_first(as_alice: Client, a_dialog: Maker) -> None:
    old, _new = a_dialog(), a_dialog("New and well", archived=True)
    answered(old, "critical")
    long_ago = timezone.now() - timedelta(days=9)
    Dialog.objects.filter(pk=old.pk).update(title="Old and critical", active_at=long_ago, archived_at=long_ago)

    text = page(as_alice, "/?shelf=archived").text

    assert text.index("New and well") < text.index("Old and critical")


def test_a_thousand_dialogs_are_five_queries_and_fifty_rows(as_alice: Client, alice: User, agent: Agent) -> None:
    """Who it is (2), all of them, those on the page, their readings."""
    now = timezone.now()
    dialogs = Dialog.objects.bulk_create(
        Dialog(owner=alice, agent=agent, llm=agent.llm, title=f"No. {number};", active_at=now) for number in range(1000)
    )
    Course.objects.create(dialog=dialogs[500], number=1)
    answered(dialogs[500], "critical")
    Dialog.objects.filter(pk=dialogs[500].pk).update(title="The one in need")

    with CaptureQueriesContext(connection) as queries:
        text = page(as_alice, "/").text

    assert len(queries) <= 5
    assert text.count("No. ") == 49
    assert text.index("The one in need") < text.index("No. ")
