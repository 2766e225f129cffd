"""Patterns on the page are those that the critic acts on, of one's own dialogs."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.contrib.auth.models import User

from dialogs.learning.reads.series import patterns
from dialogs.models import Dialog
from health.models import Proposal
from tests.dialogs.learning.reads.insights.conftest import Maker


def test_three_in_a_day_are_a_pattern_of_whose_dialogs_they_are(
    dialog: Dialog, alice: User, bob: User, now: datetime, happened: Maker
) -> None:
    for hours in (1, 2, 3):
        happened("TOKEN_LIMIT_EXCEEDED", ago=timedelta(hours=hours))
    for _each in range(2):
        happened("OVER_HIT", ago=timedelta(hours=1))
    happened("OVER_HIT", ago=timedelta(hours=25))

    (found,) = patterns(alice.pk, now=now)

    assert (found.agent, found.code, found.finding.count) == (dialog.agent, "TOKEN_LIMIT_EXCEEDED", 3)
    assert patterns(bob.pk, now=now) == []
    assert len(patterns(None, now=now)) == 1


def test_incoherent_results_are_one_too_and_have_no_code_of_events(
    alice: User, now: datetime, compacted: Maker
) -> None:
    for coherence in (0.64, 0.5, 0.2, 0.65):
        compacted(coherence=coherence)

    (found,) = patterns(alice.pk, now=now)

    assert (found.finding.code, found.finding.count, found.code) == ("COHERENCE_DROP", 3, "")


def test_it_knows_the_proposal_that_waits(dialog: Dialog, alice: User, now: datetime, happened: Maker) -> None:
    for _each in range(3):
        happened("OVER_HIT")
    Proposal.objects.create(kind="limit", agent=dialog.agent, status="dismissed")
    waiting = Proposal.objects.create(kind="limit", agent=dialog.agent)

    (found,) = patterns(alice.pk, now=now)

    assert found.proposal_id == waiting.pk
