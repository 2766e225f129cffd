"""The proposals page: who may see it, what it says, and what its buttons do."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client

from dialogs.learning.writes import make_proposals
from dialogs.models import Agent
from health.compaction.config import ContextConfig
from health.models import Proposal, SettingsChange
from tests.dialogs.learning.test_proposals import RECENT_FIRST, chain, limit, trouble  # noqa: F401  # fixtures
from tests.dialogs.pages.views.pages import Page, page

URL = "/proposals/"


def said(found: Page) -> str:
    return " ".join(found.text.split())


def press(client: Client, path: str, **data: str) -> str:
    response = client.post(URL + path, data, follow=True)
    assert response.status_code == 200
    return said(Page(response.content.decode()))


def test_bob_sees_nothing_and_decides_nothing(as_bob: Client, limit: Proposal) -> None:  # noqa: F811
    assert as_bob.get(URL).status_code == 403
    for path in ("look/", f"{limit.pk}/"):
        assert as_bob.post(URL + path, {"do": "accept"}).status_code == 403
    assert Proposal.objects.get().status == "open"


def test_sam_finds_it_from_the_settings(as_sam: Client) -> None:
    assert URL in page(as_sam, "/settings/context/").links()
    assert "Nothing waits for a decision" in said(page(as_sam, URL))


def test_a_limit_is_shown_with_its_evidence_and_what_it_would_do(as_sam: Client, limit: Proposal) -> None:  # noqa: F811
    found = page(as_sam, URL)

    text = said(found)
    assert f"Limit of Helper: 3,500 → {limit.after['limit']:,} tokens" in text
    assert "5 times within 24 hours: the context was over its limit" in text
    now, then = limit.expected["over_hits"]
    assert f"Requests above the limit≈{now:,}≈{then:,}" in text
    # No word of a dialog.
    assert [word for word in ("Friday", "Question", "turbine") if word in text] == []
    assert found.offences == []


def test_an_order_is_shown_with_its_bounds(as_sam: Client, chain: Proposal) -> None:  # noqa: F811
    text = said(page(as_sam, URL))

    assert "Order of the chain: prioritize_recent first" in text
    assert re.search(r"≈0\.\d+ more reward in each run \(95 % sure of 0\.\d+ to 0\.\d+\)", text)
    assert ", ".join(ContextConfig().chain_order) in text


def test_looking_now_makes_the_proposals(as_sam: Client, trouble: Agent) -> None:  # noqa: F811
    assert "1 new proposal." in press(as_sam, "look/")
    assert "nothing new to propose" in press(as_sam, "look/")
    assert Agent.objects.get().context_limit == 3500
    assert not SettingsChange.objects.exists()


def test_a_proposal_is_changed_accepted_and_undone(as_sam: Client, limit: Proposal) -> None:  # noqa: F811
    assert "in force" in press(as_sam, f"{limit.pk}/", do="accept", limit="6,200")
    assert Agent.objects.get().context_limit == 6200

    assert "in force again" in press(as_sam, f"{limit.pk}/", do="undo")
    assert Agent.objects.get().context_limit == 3500
    assert Proposal.objects.get().status == "undone"
    assert SettingsChange.objects.count() == 2


def test_a_proposal_is_dismissed(as_sam: Client, limit: Proposal) -> None:  # noqa: F811
    assert "dismissed" in press(as_sam, f"{limit.pk}/", do="dismiss", limit="6200")

    assert Proposal.objects.get().status == "dismissed"
    assert Agent.objects.get().context_limit == 3500


@pytest.mark.parametrize("typed", ["", "x", "99999999", "-1"])
def test_what_cannot_be_is_refused_in_words(as_sam: Client, limit: Proposal, typed: str) -> None:  # noqa: F811
    text = press(as_sam, f"{limit.pk}/", do="accept", limit=typed)

    assert "cannot be proposed" in text or "The limit must be from" in text
    press(as_sam, f"{limit.pk}/", do="explode")
    assert Proposal.objects.get().status == "open"


def test_an_order_is_accepted_as_typed(as_sam: Client, chain: Proposal) -> None:  # noqa: F811
    press(as_sam, f"{chain.pk}/", do="accept", chain=", ".join(RECENT_FIRST))

    assert Proposal.objects.get().status == "accepted"
    assert make_proposals() == []


@pytest.mark.parametrize("status", ["open", "accepted"])
def test_the_page_is_all_chinese(sam: User, limit: Proposal, status: str) -> None:  # noqa: F811
    from tests.test_translations import chinese_browser, english_words

    Proposal.objects.update(status=status)
    browser = chinese_browser()
    browser.force_login(sam)

    assert english_words(page(browser, URL)) - {"Helper", "sam"} == set()
