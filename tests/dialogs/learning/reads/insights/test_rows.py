"""The rows of the page: what is known of an agent with its LLM stands together."""

from __future__ import annotations

from django.contrib.auth.models import User

from dialogs.learning.reads.insights.rows import rows
from dialogs.learning.reads.insights.scope import Scope
from dialogs.models import Agent, Dialog
from health.models import ContextEvent, LlmCalibration
from tests.dialogs.learning.reads.insights.conftest import Maker


def test_times_and_errors_stand_with_whose_they_are(
    dialog: Dialog, alice: User, compacted: Maker, happened: Maker
) -> None:
    zoe = Agent.objects.create(name="Zoe", slug="zoe", llm=dialog.llm)
    LlmCalibration.objects.create(llm=dialog.llm, samples=[[90, 90, 100]])
    compacted(seconds=3)
    happened("WARNING")
    ContextEvent.objects.create(code="OVER_HIT", owner=alice, agent=zoe, llm=dialog.llm)
    ContextEvent.objects.create(code="OVER_HIT", owner=alice, agent=None, llm=None)

    found = rows(Scope(owner_id=alice.pk))

    told = {row.pair.agent: (row.took and row.took.half, row.missed and row.missed.reports) for row in found.pairs}
    assert told == {dialog.agent: (3.0, 1), zoe: (None, 1), None: (None, None)}
    assert found.total.took is not None
    assert (found.total.figures.over_hits, found.total.took.half, found.total.pair) == (2, 3.0, None)
