"""The work of a "what if": kept replay by replay, in slices, by one worker at a time, until somebody cancels it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from dialogs.learning import what_if as service
from dialogs.learning import what_if as work
from dialogs.learning.variants import NO_LIMIT, Variant, rows_of
from dialogs.learning.what_if import Replay, first_row, perform
from dialogs.models import LLM, Course, Dialog
from health.models import LlmPrice, WhatIf
from tests.dialogs.compacting_builders import a_history

ROWS = [first_row(Variant(limit, ("select_passages",))) for limit in (NO_LIMIT, 3500)]


@pytest.fixture
def asked(dialog: Dialog, alice: User) -> WhatIf:
    LLM.objects.update(context_length=100_000)
    a_history(dialog, pairs=20, sentences=6)
    return service.ask(owner=alice, agent=dialog.agent, rows=ROWS, most_dialogs=10)


def slices(row: WhatIf, *, seconds: float) -> Iterator[WhatIf]:
    while perform(row.pk, seconds=seconds):
        row.refresh_from_db()
        yield row
    row.refresh_from_db()
    yield row


def test_every_row_is_gone_through_with_every_dialog(asked: WhatIf) -> None:
    (done,) = slices(asked, seconds=60)

    assert (done.status, done.done, done.total) == ("finished", 2, 2)
    whole, limited = done.rows
    assert whole["compactions"] == 0 < limited["compactions"]
    assert limited["tokens_sent"] < whole["tokens_sent"]
    assert done.finished_at is not None


def test_slices_come_to_the_same(asked: WhatIf, dialog: Dialog, alice: User) -> None:
    (at_once,) = slices(asked, seconds=60)
    again = service.ask(owner=alice, agent=dialog.agent, rows=ROWS, most_dialogs=10)

    *_before, last = slices(again, seconds=-1)

    assert (last.done, last.rows) == (2, at_once.rows)


def test_after_its_time_no_slice_compacts_again(asked: WhatIf, monkeypatch: pytest.MonkeyPatch) -> None:
    compacted: list[int] = []
    outcome = Replay._outcome
    monkeypatch.setattr(Replay, "_outcome", lambda engine, at: (compacted.append(at), outcome(engine, at))[1])

    seen = [len(compacted) for _slice in slices(asked, seconds=-1)]

    assert len(seen) > 2
    assert seen == list(range(len(seen)))
    assert sorted(set(compacted)) == compacted


def test_a_dialog_that_is_erased_half_way_leaves_nothing_to_the_next(asked: WhatIf, dialog: Dialog) -> None:
    first = slices(asked, seconds=-1)
    next(first)
    next(first)
    assert work.HALFWAY in WhatIf.objects.get().rows[1]
    dialog.delete()

    *_before, done = slices(asked, seconds=-1)

    assert done.rows[1] == ROWS[1]


def test_one_works_at_it_at_a_time_and_another_takes_up_what_was_left(asked: WhatIf) -> None:
    held = service.claim(asked.pk)

    assert held is not None
    assert service.claim(asked.pk) is None
    WhatIf.objects.update(claimed_until=timezone.now() - timedelta(seconds=1))
    assert service.claim(asked.pk) is not None
    assert not service.keep(held, rows=ROWS, done=1)


def test_cancelling_ends_it_and_keeps_what_there_is(asked: WhatIf) -> None:
    kept = next(slices(asked, seconds=-1)).rows

    service.cancel(asked)

    assert not perform(asked.pk)
    asked.refresh_from_db()
    assert (asked.status, asked.done, asked.rows) == ("cancelled", 1, kept)
    assert kept[0]["requests"] == 20
    assert kept[1] == ROWS[1]


def test_only_sums_of_as_many_dialogs_stand_beside_each_other(asked: WhatIf) -> None:
    rows = [first | {"dialogs": 2, "tokens_sent": 800} for first in ROWS]
    asked.rows = [rows[0], rows[1] | {"tokens_sent": 600}, rows[1] | {"dialogs": 1, "tokens_sent": 300}]

    now, as_many, fewer = rows_of(asked, no_limit=NO_LIMIT)

    assert (now.share, as_many.share, fewer.share) == (1.0, 0.75, None)
    # How many dialogs a row holds is told where they are not the same.
    assert [row.dialogs for row in (now, as_many, fewer)] == [2, 2, 1]
    asked.rows = rows
    assert [row.dialogs for row in rows_of(asked, no_limit=NO_LIMIT)] == [None, None]


def test_a_dialog_that_was_erased_meanwhile_is_left_out(asked: WhatIf, dialog: Dialog) -> None:
    dialog.delete()

    (done,) = slices(asked, seconds=60)

    assert (done.status, done.done) == ("finished", 2)
    assert done.rows == ROWS


def test_what_breaks_is_told_not_tried_for_ever(asked: WhatIf, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_args: object) -> None:
        raise RuntimeError("no")

    monkeypatch.setattr(work, "replayed", broken)

    assert not perform(asked.pk)
    asked.refresh_from_db()
    assert asked.status == "failed"


def test_only_ones_own_dialogs_with_that_agent_are_gone_through(
    asked: WhatIf, dialog: Dialog, bob: User, alice: User
) -> None:
    Dialog.objects.create(owner=alice, agent=dialog.agent, llm=dialog.llm, active_at=timezone.now())

    assert asked.dialogs == [str(dialog.pk)]
    assert service.ask(owner=bob, agent=dialog.agent, rows=ROWS, most_dialogs=10).dialogs == []


def test_asking_again_ends_what_is_under_way_and_only_the_newest_are_kept(
    asked: WhatIf, alice: User, dialog: Dialog
) -> None:
    for _each in range(6):
        service.ask(owner=alice, agent=dialog.agent, rows=ROWS, most_dialogs=1)

    newest, *others = WhatIf.objects.filter(owner=alice)
    assert newest.status == "queued"
    assert [one.status for one in others] == ["cancelled"] * 4


def test_nothing_to_go_through_is_done_at_once(dialog: Dialog, bob: User) -> None:
    row = service.ask(owner=bob, agent=dialog.agent, rows=ROWS, most_dialogs=10)

    (done,) = slices(row, seconds=60)

    assert (done.status, done.total) == ("finished", 0)


def test_what_it_costs_is_told_where_the_price_is_known(asked: WhatIf, dialog: Dialog) -> None:
    LlmPrice.objects.create(llm=dialog.llm, per_million=Decimal("2.5"))

    (done,) = slices(asked, seconds=60)
    whole, _limited = rows_of(done, no_limit=NO_LIMIT)

    assert whole.limit is None
    assert whole.cost == Decimal("2.5") * done.rows[0]["tokens_sent"] / 1_000_000


def test_one_unknown_price_makes_the_whole_cost_unknown(asked: WhatIf, dialog: Dialog, alice: User) -> None:
    other = LLM.objects.create(provider=dialog.llm.provider, model_id="free", context_length=100_000)
    LlmPrice.objects.create(llm=other, per_million=Decimal(1))
    second = Dialog.objects.create(owner=alice, agent=dialog.agent, llm=other, active_at=timezone.now())
    Course.objects.create(dialog=second, number=1)
    a_history(second, pairs=2)
    row = service.ask(owner=alice, agent=dialog.agent, rows=ROWS, most_dialogs=10)

    (done,) = slices(row, seconds=60)

    assert [one["dialogs"] for one in done.rows] == [2, 2]
    assert [one.cost for one in rows_of(done, no_limit=NO_LIMIT)] == [None, None]
