"""A what-if is queued and worked at: replay after replay, each stored at once, in slices, so that live compactions come
in between. Of each person only the newest few are kept.

A replay goes through one dialog with one limit and one chain, and compacts with the real engine. No model is asked (the
vectors are static ones), and no dialog is changed. All numbers are estimates.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal
from math import inf
from time import monotonic
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone
from django.utils.functional import cached_property

from dialogs.common.schedule import replay_on_commit
from dialogs.compaction.facts import LEAST_GAIN
from dialogs.compaction.work import config_for
from dialogs.context.estimate import growth_of
from dialogs.context.material import Material, material
from dialogs.learning.variants import Variant, dialogs_of
from dialogs.llms.guard import active_guard, config_of
from dialogs.models import Agent, Dialog
from health.adapters import embeddings
from health.compaction.accounts import BINDING, MOST_LOSSES
from health.compaction.compact import compact
from health.compaction.config import ContextConfig
from health.compaction.runner import run
from health.compaction.terms.outcome import CompactionOutcome, Loss, Status
from health.compaction.terms.ports import Answer, Embed, Need
from health.critic.replay import Growth, ReplayTotals, Rules, gone_through, to_the_goal
from health.models import CompactionRun, LlmPrice, WhatIf
from health.models.claims import claimed_until, is_over

logger = logging.getLogger(__name__)
# There is one worker for compactions. A live one waits at most for a slice, and then for the compaction that is running
# in it: no slice begins another after its time.
SLICE_SECONDS = 1.0
# The key in a row of an unfinished replay, with which another slice goes on.
HALFWAY = "halfway"
A_MILLION = 1_000_000
Row = dict[str, Any]
EMBEDDER = "static"
# How long the compactions of one replay may take. Later ones are not run: each counts as reaching its goal.
MOST_SECONDS = 10.0


def first_row(variant: Variant) -> Row:
    return {"limit": variant.limit, "chain": list(variant.chain)}


def perform(what_if_id: int, *, seconds: float = SLICE_SECONDS) -> bool:
    """Work at it for one slice. True: there is more to do."""
    held = claim(what_if_id)
    if held is None:
        return False
    try:
        return _slice(WhatIf.objects.get(pk=what_if_id), held, until=monotonic() + seconds)
    except Exception:
        logger.exception("What if %s failed", what_if_id)
        finish(held, WhatIf.Status.FAILED)
        return False


def _slice(row: WhatIf, held: WhatIfClaim, *, until: float) -> bool:
    course: ReplayedCourse | None = None
    price: Decimal | None = None
    for number in range(row.done, row.total):
        dialog, at = divmod(number, len(row.rows))
        if course is None or at == 0:
            course = _course(row.dialogs[dialog])
            price = _price(course.dialog) if course else None
        result = _replayed(course, row.rows[at], until=until) if course else None
        row.rows[at].pop(HALFWAY, None)
        if isinstance(result, PartialReplay):
            row.rows[at][HALFWAY] = asdict(result)
        elif result:
            row.rows[at] = _added(row.rows[at], result, price)
        done = number if isinstance(result, PartialReplay) else number + 1
        if not keep(held, rows=row.rows, done=done):
            return False
        if monotonic() > until and done < row.total:
            return leave(held)
    finish(held, WhatIf.Status.FINISHED)
    return False


def _replayed(course: ReplayedCourse, row: Row, *, until: float) -> ReplayResult | PartialReplay:
    partial = PartialReplay(**row[HALFWAY]) if HALFWAY in row else None
    return replayed(course, Variant(row["limit"], tuple(row["chain"])), partial, until=until)


def _course(dialog_id: str) -> ReplayedCourse | None:
    """The course to replay; None where its dialog was erased meanwhile, or has no message."""
    found = Dialog.objects.select_related("agent", "llm__provider", "current_leaf")
    dialog = found.filter(pk=dialog_id, current_leaf__isnull=False).first()
    return read_course(dialog) if dialog else None


def _price(dialog: Dialog) -> Decimal | None:
    return LlmPrice.objects.filter(llm=dialog.llm_id).values_list("per_million", flat=True).first()


def _added(row: Row, one: ReplayResult, price: Decimal | None) -> Row:
    """The row with one more replay added. One unknown price makes the whole cost unknown."""
    numbers = {
        **asdict(one.happening),
        "lost": one.lost,
        "bindings": one.bindings,
        "more_lost": int(one.are_more_lost),
        "cut_short": int(one.is_cut_short),
        "dialogs": 1,
        "unpriced": int(price is None),
    }
    cost = Decimal(row.get("cost", 0)) + (price or Decimal(0)) * one.happening.tokens_sent / A_MILLION
    return row | {name: row.get(name, 0) + value for name, value in numbers.items()} | {"cost": str(cost)}


@dataclass(frozen=True, kw_only=True)
class ReplayResult:
    """`lost`: how many facts are only in the archive at the end; `bindings`: how many of them are binding sentences."""

    happening: ReplayTotals
    lost: int = 0
    bindings: int = 0
    # So many facts are lost that the engine stops listing them.
    are_more_lost: bool = False
    is_cut_short: bool = False


@dataclass(kw_only=True)
class PartialReplay:
    """The compactions of an unfinished replay, as JSON. `left`: tokens left, by the message's place (as text). The rest
    is of the newest compaction. Another slice goes on from here and repeats none of them."""

    left: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    lost: int = 0
    bindings: int = 0
    are_more_lost: bool = False


class SliceOver(Exception):
    """The slice is over; `Replay.partial` says how far it came."""


@dataclass(kw_only=True)
class ReplayedCourse:
    """A dialog's course, read once for all variants."""

    dialog: Dialog
    growth: Growth
    config: ContextConfig = field(default_factory=ContextConfig)

    @cached_property
    def material(self) -> Material:
        """Read only when something is compacted. The run it is made for is not stored, and has no limit."""
        wish = CompactionRun(
            dialog=self.dialog,
            leaf=self.dialog.current_leaf,
            trigger=CompactionRun.Trigger.PRE_REQUEST,
            limit_tokens=0,
            reserve_tokens=self.growth.reserve,
        )
        return material(wish, config_for(wish))


def read_course(dialog: Dialog) -> ReplayedCourse:
    config = config_of(dialog)
    guard = active_guard(dialog, config)
    growth = growth_of(dialog, reserve=guard.reserve if guard else 0)
    return ReplayedCourse(dialog=dialog, growth=growth, config=guard.config if guard else config)


def replayed(
    course: ReplayedCourse, variant: Variant, partial: PartialReplay | None = None, *, until: float = inf
) -> ReplayResult | PartialReplay:
    """Replay from `partial` on. A PartialReplay where the time is over; each slice compacts at least once."""
    config = course.config
    rules = Rules(limit=variant.limit, threshold=config.warning_threshold, goal=config.goal)
    found = partial or PartialReplay()
    engine = Replay(course, variant, rules, found, until=until)
    try:
        happening = gone_through(course.growth, rules, engine.compacted)
    except SliceOver:
        return found
    return ReplayResult(
        happening=happening,
        lost=found.lost,
        bindings=found.bindings,
        are_more_lost=found.are_more_lost,
        is_cut_short=engine.is_cut_short,
    )


class Replay:
    """Compacts the course up to a message, each time from the original messages, as the guard does."""

    def __init__(
        self, course: ReplayedCourse, variant: Variant, rules: Rules, partial: PartialReplay, *, until: float
    ) -> None:
        self.course, self.variant, self.partial = course, variant, partial
        self.is_cut_short = False
        self._goal = to_the_goal(course.growth, rules)
        self._embed = embeddings.embedder(EMBEDDER)
        self._until = until
        self._has_compacted = False

    def compacted(self, at: int, total: int) -> int:
        if (known := self.partial.left.get(str(at))) is not None:
            return known
        if self.partial.seconds > MOST_SECONDS:
            self.is_cut_short = True
            return self._goal(at, total)
        if self._has_compacted and monotonic() > self._until:
            raise SliceOver
        self._has_compacted = True
        left = self.partial.left[str(at)] = self._left(at, total)
        return left

    def _left(self, at: int, total: int) -> int:
        outcome = self._outcome(at)
        after = outcome.estimated_tokens_after
        gain = 1 - after / max(1, total)
        if outcome.status is not Status.APPLIED or (gain < LEAST_GAIN and total <= self.variant.limit):
            return total
        self._note(outcome.losses)
        return after

    def _note(self, losses: Iterable[Loss]) -> None:
        gone = [loss for loss in losses if not loss.kept]
        self.partial.lost = len(gone)
        self.partial.bindings = sum(loss.kind == BINDING for loss in gone)
        self.partial.are_more_lost = len(gone) >= MOST_LOSSES

    def _outcome(self, at: int) -> CompactionOutcome:
        begun = self.course.material
        units = begun.state.units
        # The system message comes first where there is one; a growth counts it to its base.
        offset = len(units) - len(self.course.growth.sizes)
        state = replace(begun.state, units=units[: offset + at + 1], limit=self.variant.limit)
        since = monotonic()
        outcome = run(compact(state, begun.kit, chain=self.variant.chain, judge=False), answer=self._answer)
        self.partial.seconds += monotonic() - since
        return outcome

    def _answer(self, need: Need) -> Answer:
        return self._embed(need) if isinstance(need, Embed) else None


OPEN = (WhatIf.Status.QUEUED, WhatIf.Status.RUNNING)
MOST_KEPT = 5


@dataclass(frozen=True)
class WhatIfClaim:
    what_if_id: int
    token: int


@transaction.atomic
def ask(*, owner: User, agent: Agent, rows: Sequence[dict[str, Any]], most_dialogs: int) -> WhatIf:
    """Queue a what-if over this person's newest dialogs with the agent. An unfinished earlier one is cancelled."""
    before = WhatIf.objects.select_for_update().filter(owner=owner)
    before.filter(status__in=OPEN).update(status=WhatIf.Status.CANCELLED, finished_at=timezone.now())
    before.filter(pk__in=list(before.values_list("pk", flat=True)[MOST_KEPT - 1 :])).delete()
    dialogs = [str(one) for one in dialogs_of(owner, agent)[:most_dialogs]]
    row = WhatIf.objects.create(owner=owner, agent=agent, dialogs=dialogs, rows=list(rows))
    replay_on_commit(row.pk)
    return row


def cancel(row: WhatIf) -> None:
    WhatIf.objects.filter(pk=row.pk, status__in=OPEN).update(status=WhatIf.Status.CANCELLED, finished_at=timezone.now())


def claim(what_if_id: int) -> WhatIfClaim | None:
    """Claim the "what if", if nobody works at it."""
    taken = WhatIf.objects.filter(Q(claimed_until=None) | is_over(), pk=what_if_id, status__in=OPEN).update(
        status=WhatIf.Status.RUNNING, claim_token=F("claim_token") + 1, claimed_until=claimed_until()
    )
    return WhatIfClaim(what_if_id, WhatIf.objects.get(pk=what_if_id).claim_token) if taken else None


def keep(held: WhatIfClaim, *, rows: Sequence[dict[str, Any]], done: int) -> bool:
    """Keep one more replay. False: somebody cancelled the "what if", or another worker has it now."""
    return bool(_held(held).update(rows=list(rows), done=done, claimed_until=claimed_until()))


def finish(held: WhatIfClaim, status: str) -> None:
    _held(held).update(status=status, finished_at=timezone.now())


def leave(held: WhatIfClaim) -> bool:
    """Release the claim, for another slice. False: it was cancelled or taken over."""
    return bool(_held(held).update(claimed_until=timezone.now()))


def _held(held: WhatIfClaim):  # type: ignore[no-untyped-def]  # a QuerySet, whose type needs the manager's
    return WhatIf.objects.filter(pk=held.what_if_id, claim_token=held.token, status=WhatIf.Status.RUNNING)
