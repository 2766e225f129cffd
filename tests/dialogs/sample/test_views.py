"""The button that brings a sample in, the tour's buttons, and where both are shown."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from dialogs.models import LLM, Agent, Dialog
from dialogs.models.dialog import Stop
from tests.dialogs.conftest import Maker
from tests.dialogs.pages.views.pages import HTMX, page

pytestmark = pytest.mark.django_db


@pytest.fixture
def sample(as_alice: Client, agent: Agent) -> Dialog:
    as_alice.post(reverse("sample"))
    return Dialog.objects.get()


def step_url(dialog: Dialog) -> str:
    return reverse("tour_step", args=[dialog.pk])


def test_the_empty_page_and_that_of_a_new_dialog_offer_a_sample_that_is_only_posted_for(
    as_alice: Client, agent: Agent
) -> None:
    assert "Try a sample" in page(as_alice, "/").text
    assert "Try a sample" in page(as_alice, "/dialogs/new/").text
    assert as_alice.get(reverse("sample")).status_code == 405


def test_without_a_model_the_empty_page_says_what_a_sample_needs(as_alice: Client) -> None:
    text = page(as_alice, "/").text

    assert "Try a sample" not in text
    assert "once a model answers" in text


def test_without_a_model_no_sample_begins(as_alice: Client, agent: Agent) -> None:
    LLM.objects.update(enabled=False)

    answer = as_alice.post(reverse("sample"), follow=True)

    assert "A sample needs a model that answers" in answer.content.decode()
    assert not Dialog.objects.exists()


def test_a_second_press_opens_the_sample_that_is_there(as_alice: Client, sample: Dialog) -> None:
    answer = as_alice.post(reverse("sample"))

    assert answer.headers["Location"] == reverse("dialog", args=[sample.pk])
    assert Dialog.objects.count() == 1
    assert "Open your sample" in page(as_alice, "/dialogs/new/").text


def test_the_page_of_a_sample_shows_the_tour_and_nothing_that_the_policy_forbids(
    as_alice: Client, sample: Dialog
) -> None:
    shown = page(as_alice, reverse("dialog", args=[sample.pk]))

    assert "1 of 9" in shown.text
    assert shown.offences == []


def test_the_page_of_another_dialog_shows_no_tour(as_alice: Client, a_dialog: Maker) -> None:
    assert "of 9" not in page(as_alice, reverse("dialog", args=[a_dialog("Mine").pk])).text


def test_without_script_a_press_leads_back_to_the_dialog(as_alice: Client, sample: Dialog) -> None:
    answer = as_alice.post(step_url(sample), {"stop": "meter"})

    sample.refresh_from_db()
    assert (answer.headers["Location"], sample.tour) == (reverse("dialog", args=[sample.pk]), Stop.RISE)


def test_the_socket_brings_the_next_stop_and_a_press_while_the_agent_works_says_so(
    as_alice: Client, sample: Dialog
) -> None:
    first, second = (as_alice.post(step_url(sample), {"stop": stop}, headers=HTMX) for stop in ("meter", "rise"))

    assert (first.status_code, "HX-Redirect" in first.headers) == (204, False)
    assert (second.status_code, "still answering" in second.content.decode()) == (422, True)


@pytest.mark.parametrize(("stop", "name"), [("redo", "dialog_archive_search"), ("archive", "dialog")])
def test_the_tour_leads_to_the_archive_and_back(as_alice: Client, sample: Dialog, stop: str, name: str) -> None:
    Dialog.objects.update(tour=stop)

    answer = as_alice.post(step_url(sample), {"stop": stop}, headers=HTMX)

    assert answer.headers["HX-Redirect"] == reverse(name, args=[sample.pk])


def test_the_archive_shows_the_tour_at_its_stop_only(as_alice: Client, sample: Dialog) -> None:
    there = reverse("dialog_archive_search", args=[sample.pk])
    before = page(as_alice, there).text
    Dialog.objects.update(tour="archive")

    assert ("of 9" in before, "8 of 9" in page(as_alice, there).text) == (False, True)


def test_a_tour_is_closed_for_good(as_alice: Client, sample: Dialog) -> None:
    as_alice.post(step_url(sample), {"stop": "meter", "close": "1"})

    assert "of 9" not in page(as_alice, reverse("dialog", args=[sample.pk])).text


def test_nonsense_instead_of_a_stop_does_nothing(as_alice: Client, sample: Dialog) -> None:
    count = sample.messages.count()

    answer = as_alice.post(step_url(sample), {"stop": "closed"}, headers=HTMX)

    sample.refresh_from_db()
    assert (answer.status_code, sample.tour, sample.messages.count()) == (204, Stop.METER, count)
