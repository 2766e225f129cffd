"""What the tour says, and who plays a sample."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from dialogs.llms.writes.providers import install_demo, retire_demo
from dialogs.models import LLM, Agent, Dialog
from dialogs.models.dialog import Stop
from dialogs.sample.reads import STOPS, own_sample, player, tour_of
from dialogs.sample.writes import begin_sample
from dialogs.turns.writes.messages import post_message
from tests.dialogs.compaction_runs import a_run, an_applied_run

pytestmark = pytest.mark.django_db


@pytest.fixture
def sample(alice: User, agent: Agent) -> Dialog:
    return begin_sample(owner=alice, agent=agent)


def at(dialog: Dialog, stop: str) -> Dialog:
    Dialog.objects.filter(pk=dialog.pk).update(tour=stop)
    return Dialog.objects.get(pk=dialog.pk)


def test_only_samples_have_a_tour(dialog: Dialog, sample: Dialog) -> None:
    assert tour_of(dialog) is None
    assert tour_of(sample) is not None
    assert tour_of(at(sample, Stop.CLOSED)) is None


def test_every_stop_but_the_end_says_one_sentence() -> None:
    assert set(Stop.values) - set(STOPS) == {Stop.NO_SAMPLE, Stop.CLOSED}
    assert [
        stop for stop, said in STOPS.items() if str(said.words).count(". ") or not str(said.words).endswith(".")
    ] == []


def test_the_tour_waits_for_an_answer_and_for_a_compaction(sample: Dialog, dialog: Dialog) -> None:
    rests = tour_of(sample)
    a_run(sample)
    compacts = tour_of(sample)

    assert rests is not None
    assert compacts is not None
    assert (rests.is_waiting, compacts.is_waiting) == (False, True)


def test_the_tour_waits_while_the_agent_answers(sample: Dialog) -> None:
    post_message(dialog=sample, content="Hello")

    tour = tour_of(at(sample, Stop.RISE))

    assert tour is not None
    assert tour.is_waiting


def test_a_window_that_is_far_from_full_is_said_to_be(sample: Dialog) -> None:
    tour = tour_of(at(sample, Stop.COMPACTION))
    assert tour is not None
    assert "far from full" in tour.said.words

    an_applied_run(sample)

    tour = tour_of(sample)
    assert tour is not None


def test_on_the_page_of_the_archive_only_its_stop_is_shown(sample: Dialog) -> None:
    assert tour_of(sample, in_archive=True) is None

    there, here = tour_of(at(sample, Stop.ARCHIVE), in_archive=True), tour_of(at(sample, Stop.ARCHIVE))

    assert there is not None
    assert here is not None
    assert (there.leads_away, here.leads_away) == (False, True)


def test_the_demo_plays_where_it_runs(agent: Agent) -> None:
    demo = install_demo(base_url="http://127.0.0.1:8091", model_id="tiny")
    assert player() == demo

    retire_demo()

    assert player() == agent


def test_the_answers_of_the_demo_are_called_what_they_are(alice: User) -> None:
    demo = install_demo(base_url="http://127.0.0.1:8091", model_id="tiny")
    sample = begin_sample(owner=alice, agent=demo)

    tour = tour_of(at(sample, Stop.RISE))

    assert tour is not None
    assert "not wisdom" in tour.note


def test_nobody_plays_where_no_model_answers(llm: LLM, agent: Agent) -> None:
    LLM.objects.update(enabled=False)

    assert player() is None


def test_a_sample_is_at_hand_until_it_is_put_away(sample: Dialog, alice: User, bob: User) -> None:
    assert (own_sample(alice), own_sample(bob)) == (sample, None)

    Dialog.objects.update(trashed_at=sample.active_at)

    assert own_sample(alice) is None
