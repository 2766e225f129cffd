"""The page "What if": one's own dialogs, a table that fills itself, and answers to what cannot be tried."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from dialogs.learning.views import what_if as view
from dialogs.learning.what_if import perform
from dialogs.models import LLM, Agent, Dialog
from health.models import WhatIf
from tests.dialogs.compacting_builders import a_history, guard
from tests.dialogs.pages.views.pages import HTMX, Page, page

WHAT_IF = "/insights/what-if/"
CHOSEN = {"limit": ["now", "much_more"], "chain": ["now"]}


@pytest.fixture
def helper(dialog: Dialog) -> Agent:
    guard(dialog, limit=3500)
    a_history(dialog, pairs=16, sentences=6)
    return dialog.agent


def asked(client: Client, agent: Agent, **fields: Any) -> str:
    response = client.post(WHAT_IF, {"agent": agent.pk, **CHOSEN, **fields})
    assert response.status_code == 302, response.content.decode()
    return response.url


def cancel_url() -> str:
    return f"{WHAT_IF}{WhatIf.objects.get().pk}/cancel/"


def test_asking_leads_to_a_table_that_asks_for_itself_until_it_is_done(as_alice: Client, helper: Agent) -> None:
    url = asked(as_alice, helper)

    begun = Page(as_alice.get(url, headers=HTMX).content.decode())
    assert perform(WhatIf.objects.get().pk, seconds=60) is False
    done = Page(as_alice.get(url, headers=HTMX).content.decode())

    assert any(attrs.get("hx-trigger") == "every 1s" for _tag, attrs in begun.tags)
    assert "0 of 2 replays" in begun.text
    assert not any(attrs.get("hx-trigger") for _tag, attrs in done.tags)
    assert "as it is now" in done.text
    assert "≈100 %" in done.text
    assert done.text.count("no price known") == 2
    assert "Cost of prompts" in done.text
    assert "answers, which are the same in every row, are not counted" in done.text
    assert done.offences == []


def test_below_the_table_the_form_stands_as_it_was_sent(as_alice: Client, helper: Agent) -> None:
    shown = page(as_alice, asked(as_alice, helper, other_limits="4500"))

    fields = [attrs for tag, attrs in shown.tags if tag == "input"]
    chosen = {attrs["value"] for attrs in fields if attrs.get("type") == "checkbox" and "checked" in attrs}
    assert chosen == {"now", "much_more"}
    assert {"4500", ""} == {attrs["value"] for attrs in fields if str(attrs.get("name")).startswith("other_")}


def test_a_limit_that_the_window_has_no_room_for_is_named(as_alice: Client, helper: Agent) -> None:
    LLM.objects.update(context_length=4000)

    shown = page(as_alice, asked(as_alice, helper, limit=["now", "more", "much_more"])).text

    assert "The window has no room for “a quarter more”, “half as much again”: tried with 3,600 tokens." in shown


def test_the_whole_of_an_unknown_window_is_no_limit(as_alice: Client, helper: Agent) -> None:
    LLM.objects.update(context_length=None)
    said = "The LLM’s window is unknown, so no limit is the whole of it."

    refused = as_alice.post(WHAT_IF, {"agent": helper.pk, **CHOSEN, "limit": ["window"]}).content.decode()

    assert said in refused
    assert said in page(as_alice, asked(as_alice, helper, limit=["now", "window"])).text


def test_after_cancelling_too_the_form_stands_as_it_was_sent(as_alice: Client, helper: Agent) -> None:
    url = asked(as_alice, helper, other_limits="4500")
    begun = Page(as_alice.get(url, headers=HTMX).content.decode())
    (cancel,) = (attrs["action"] for tag, attrs in begun.tags if tag == "form")
    (again,) = (attrs["hx-get"] for tag, attrs in begun.tags if attrs.get("hx-get"))

    assert again == url
    assert as_alice.post(cancel).url == url
    assert "It was cancelled" in page(as_alice, url).text


def test_where_rows_hold_different_numbers_of_dialogs_they_say_so(as_alice: Client, helper: Agent) -> None:
    url = asked(as_alice, helper)
    perform(WhatIf.objects.get().pk, seconds=60)
    row = WhatIf.objects.get()
    row.rows[0]["dialogs"] = 2
    row.save()

    shown = page(as_alice, url).text

    assert "2 dialogs gone through" in shown
    assert "1 dialog gone through" in shown
    assert shown.count(" %") == 1


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"other_limits": "12"}, "“12” is no limit"),
        ({"other_chain": "magic"}, "There is no strategy “magic”"),
        ({"limit": []}, "Choose at least one limit"),
    ],
)
def test_what_cannot_be_tried_is_said_and_stays_typed(
    as_alice: Client, helper: Agent, fields: dict[str, Any], said: str
) -> None:
    response = as_alice.post(WHAT_IF, {"agent": helper.pk, **CHOSEN, **fields})

    assert response.status_code == 422
    shown = response.content.decode()
    assert said in shown
    assert all(f'value="{value}"' in shown for value in fields.values() if isinstance(value, str))
    assert not WhatIf.objects.exists()


def test_nobody_sees_or_cancels_anothers(as_bob: Client, as_alice: Client, helper: Agent) -> None:
    url = asked(as_alice, helper)

    assert as_bob.get(url).status_code == 404
    assert as_bob.post(cancel_url()).status_code == 404
    assert WhatIf.objects.get().status == "queued"


def test_staff_too_replay_only_their_own(as_sam: Client, helper: Agent) -> None:
    shown = page(as_sam, WHAT_IF)

    assert "There is nothing to go through yet" in shown.text
    assert as_sam.post(WHAT_IF, {"agent": helper.pk, **CHOSEN}).status_code == 422


def test_an_agent_that_is_not_ones_own_is_refused_and_no_other_is_taken_for_it(as_alice: Client, helper: Agent) -> None:
    zoe = Agent.objects.create(name="Zoe", slug="zoe", llm=helper.llm)

    response = as_alice.post(WHAT_IF, {"agent": zoe.pk, **CHOSEN, "other_limits": "4500"})

    assert response.status_code == 422
    shown = response.content.decode()
    assert "You have no dialog with this agent." in shown
    assert 'value="4500"' in shown
    assert not WhatIf.objects.exists()


def test_a_link_to_an_agent_that_is_not_ones_own_shows_another(as_alice: Client, helper: Agent) -> None:
    assert as_alice.get(f"{WHAT_IF}?agent=999").context["agent"] == helper


def test_what_no_worker_takes_up_is_done_here(as_alice: Client, helper: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []
    monkeypatch.setattr(view, "_do_it_here", begun.append)
    url = asked(as_alice, helper)

    as_alice.get(url)
    WhatIf.objects.update(asked_at=timezone.now() - timedelta(minutes=1))
    as_alice.get(url)

    assert begun == [WhatIf.objects.get().pk]


@pytest.mark.django_db(transaction=True)
def test_doing_it_here_comes_to_its_end(as_alice: Client, helper: Agent) -> None:
    asked(as_alice, helper)

    view._do_it_here(WhatIf.objects.get().pk)

    assert WhatIf.objects.get().status == "finished"


def test_the_first_dialog_is_waited_for(as_alice: Client) -> None:
    assert "With your first message" in page(as_alice, WHAT_IF).text
