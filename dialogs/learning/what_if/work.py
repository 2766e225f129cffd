"""A "what if" as it is asked for and worked at: replay after replay, each kept at once, in slices between which others
have their turn. It is never put into force, and only the newest few of a person are kept.

A replay takes one dialog under one limit and one chain through the critic's replay, with the engine itself for every
compaction in it. No model is asked, no dialog is changed, and static vectors do, as in a worker of the turns. All
numbers are estimates.
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
from dialogs.learning.what_if.variants import Variant, dialogs_of
from dialogs.llms.guard import active_guard, config_of
from dialogs.models import Agent, Dialog
from health.adapters import embeddings
from health.compaction.accounts import BINDING, MOST_LOSSES
from health.compaction.chain import compact
from health.compaction.config import ContextConfig
from health.compaction.runner import run
from health.compaction.terms.outcome import CompactionOutcome, Loss, Status
from health.compaction.terms.ports import Answer, Embed, Need
from health.critic.replay import Growth, Happening, Rules, gone_through, to_the_goal
from health.models import CompactionRun, LlmPrice, WhatIf
from health.models.claims import claimed_until, is_over

logger = logging.getLogger(__name__)
# The worker of compactions is one. A live one waits that long for what nobody needs at once, and until a dialog is read
# and the compaction under way is done: no slice begins another after its time.
SLICE_SECONDS = 1.0
# The key in a row under which a replay is kept that another slice goes on with.
HALFWAY = "halfway"
A_MILLION = 1_000_000
Row = dict[str, Any]
EMBEDDER = "static"
# How long the compactions of one replay may take. After that the goal counts as reached, and the row says so.
MOST_SECONDS = 10.0


def first_row(variant: Variant) -> Row:
    return {"limit": variant.limit, "chain": list(variant.chain)}


def perform(what_if_id: int, *, seconds: float = SLICE_SECONDS) -> bool:
    """Go on with it for a slice. True: there is more to do."""
    held = claim(what_if_id)
    if held is None:
        return False
    try:
        return _slice(WhatIf.objects.get(pk=what_if_id), held, until=monotonic() + seconds)
    except Exception:
        logger.exception("What if %s failed", what_if_id)
        finish(held, WhatIf.Status.FAILED)
        return False


def _slice(row: WhatIf, held: Claim, *, until: float) -> bool:
    course: Course | None = None
    price: Decimal | None = None
    for number in range(row.done, row.total):
        dialog, at = divmod(number, len(row.rows))
        if course is None or at == 0:
            course = _course(row.dialogs[dialog])
            price = _price(course.dialog) if course else None
        came = _replayed(course, row.rows[at], until=until) if course else None
        row.rows[at].pop(HALFWAY, None)
        if isinstance(came, Halfway):
            row.rows[at][HALFWAY] = asdict(came)
        elif came:
            row.rows[at] = _added(row.rows[at], came, price)
        done = number if isinstance(came, Halfway) else number + 1
        if not keep(held, rows=row.rows, done=done):
            return False
        if monotonic() > until and done < row.total:
            return leave(held)
    finish(held, WhatIf.Status.FINISHED)
    return False


def _replayed(course: Course, row: Row, *, until: float) -> Replayed | Halfway:
    halfway = Halfway(**row[HALFWAY]) if HALFWAY in row else None
    return replayed(course, Variant(row["limit"], tuple(row["chain"])), halfway, until=until)


def _course(dialog_id: str) -> Course | None:
    """The course to replay; None where its dialog was erased meanwhile, or has no message."""
    found = Dialog.objects.select_related("agent", "llm__provider", "current_leaf")
    dialog = found.filter(pk=dialog_id, current_leaf__isnull=False).first()
    return read_course(dialog) if dialog else None


def _price(dialog: Dialog) -> Decimal | None:
    return LlmPrice.objects.filter(llm=dialog.llm_id).values_list("per_million", flat=True).first()


def _added(row: Row, one: Replayed, price: Decimal | None) -> Row:
    """The row with one more replay in it. A price that is not known makes the cost of all unknown."""
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
class Replayed:
    """`lost` are facts that stand only in the archive in the end, `bindings` the sentences among them that bind."""

    happening: Happening
    lost: int = 0
    bindings: int = 0
    # So many facts are lost that the engine stops listing them.
    are_more_lost: bool = False
    is_cut_short: bool = False


@dataclass(kw_only=True)
class Halfway:
    """What the compactions of a replay came to until now: tokens left, by the message's place as text, for JSON.

    What was lost is told by the newest. With these another slice goes on: what is known is not compacted again.
    """

    left: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    lost: int = 0
    bindings: int = 0
    are_more_lost: bool = False


class OutOfTime(Exception):
    """The slice is over; `Engine.halfway` says how far it came."""


@dataclass(kw_only=True)
class Course:
    """A dialog's course, read once for all that is tried on it."""

    dialog: Dialog
    growth: Growth
    config: ContextConfig = field(default_factory=ContextConfig)

    @cached_property
    def material(self) -> Material:
        """Read when it is needed: under a high limit it never is. The run is a wish that nobody stores, of no limit."""
        wish = CompactionRun(
            dialog=self.dialog,
            leaf=self.dialog.current_leaf,
            trigger=CompactionRun.Trigger.PRE_REQUEST,
            limit_tokens=0,
            reserve_tokens=self.growth.reserve,
        )
        return material(wish, config_for(wish))


def read_course(dialog: Dialog) -> Course:
    config = config_of(dialog)
    guard = active_guard(dialog, config)
    growth = growth_of(dialog, reserve=guard.reserve if guard else 0)
    return Course(dialog=dialog, growth=growth, config=guard.config if guard else config)


def replayed(
    course: Course, variant: Variant, halfway: Halfway | None = None, *, until: float = inf
) -> Replayed | Halfway:
    """From where another slice stopped. Halfway again where the time is over; each slice compacts once at least."""
    config = course.config
    rules = Rules(limit=variant.limit, threshold=config.warning_threshold, goal=config.goal)
    found = halfway or Halfway()
    engine = Engine(course, variant, rules, found, until=until)
    try:
        happening = gone_through(course.growth, rules, engine.compacted)
    except OutOfTime:
        return found
    return Replayed(
        happening=happening,
        lost=found.lost,
        bindings=found.bindings,
        are_more_lost=found.are_more_lost,
        is_cut_short=engine.is_cut_short,
    )


class Engine:
    """Compacts the course up to a message, from the originals each time, as the guard does."""

    def __init__(self, course: Course, variant: Variant, rules: Rules, halfway: Halfway, *, until: float) -> None:
        self.course, self.variant, self.halfway = course, variant, halfway
        self.is_cut_short = False
        self._goal = to_the_goal(course.growth, rules)
        self._embed = embeddings.embedder(EMBEDDER)
        self._until = until
        self._has_compacted = False

    def compacted(self, at: int, total: int) -> int:
        if (known := self.halfway.left.get(str(at))) is not None:
            return known
        if self.halfway.seconds > MOST_SECONDS:
            self.is_cut_short = True
            return self._goal(at, total)
        if self._has_compacted and monotonic() > self._until:
            raise OutOfTime
        self._has_compacted = True
        left = self.halfway.left[str(at)] = self._left(at, total)
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
        self.halfway.lost = len(gone)
        self.halfway.bindings = sum(loss.kind == BINDING for loss in gone)
        self.halfway.are_more_lost = len(gone) >= MOST_LOSSES

    def _outcome(self, at: int) -> CompactionOutcome:
        begun = self.course.material
        units = begun.state.units
        # The system message comes first where there is one; a growth counts it to its base.
        offset = len(units) - len(self.course.growth.sizes)
        state = replace(begun.state, units=units[: offset + at + 1], limit=self.variant.limit)
        since = monotonic()
        outcome = run(compact(state, begun.kit, chain=self.variant.chain, judge=False), answer=self._answer)
        self.halfway.seconds += monotonic() - since
        return outcome

    def _answer(self, need: Need) -> Answer:
        return self._embed(need) if isinstance(need, Embed) else None


# --- Writes: asking for one, holding it while it is worked at, keeping what came of it ---
OPEN = (WhatIf.Status.QUEUED, WhatIf.Status.RUNNING)
MOST_KEPT = 5


@dataclass(frozen=True)
class Claim:
    what_if_id: int
    token: int


@transaction.atomic
def ask(*, owner: User, agent: Agent, rows: Sequence[dict[str, Any]], most_dialogs: int) -> WhatIf:
    """The newest dialogs of this person with the agent, once for every row. Whatever was under way before ends."""
    before = WhatIf.objects.select_for_update().filter(owner=owner)
    before.filter(status__in=OPEN).update(status=WhatIf.Status.CANCELLED, finished_at=timezone.now())
    before.filter(pk__in=list(before.values_list("pk", flat=True)[MOST_KEPT - 1 :])).delete()
    dialogs = [str(one) for one in dialogs_of(owner, agent)[:most_dialogs]]
    row = WhatIf.objects.create(owner=owner, agent=agent, dialogs=dialogs, rows=list(rows))
    replay_on_commit(row.pk)
    return row


def cancel(row: WhatIf) -> None:
    WhatIf.objects.filter(pk=row.pk, status__in=OPEN).update(status=WhatIf.Status.CANCELLED, finished_at=timezone.now())


def claim(what_if_id: int) -> Claim | None:
    """Claim the "what if", if nobody works at it."""
    taken = WhatIf.objects.filter(Q(claimed_until=None) | is_over(), pk=what_if_id, status__in=OPEN).update(
        status=WhatIf.Status.RUNNING, claim_token=F("claim_token") + 1, claimed_until=claimed_until()
    )
    return Claim(what_if_id, WhatIf.objects.get(pk=what_if_id).claim_token) if taken else None


def keep(held: Claim, *, rows: Sequence[dict[str, Any]], done: int) -> bool:
    """Keep one more replay. False: somebody cancelled the "what if", or another worker has it now."""
    return bool(_held(held).update(rows=list(rows), done=done, claimed_until=claimed_until()))


def finish(held: Claim, status: str) -> None:
    _held(held).update(status=status, finished_at=timezone.now())


def leave(held: Claim) -> bool:
    """Let another go on with it; whether there is anything to go on with."""
    return bool(_held(held).update(claimed_until=timezone.now()))


def _held(held: Claim):  # type: ignore[no-untyped-def]  # a QuerySet, whose type needs the manager's
    return WhatIf.objects.filter(pk=held.what_if_id, claim_token=held.token, status=WhatIf.Status.RUNNING)
