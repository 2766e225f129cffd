"""Working at a "what if": replay after replay, each kept at once, in slices between which others have their turn."""

from __future__ import annotations

import logging
from dataclasses import asdict
from decimal import Decimal
from time import monotonic
from typing import Any

from dialogs.learning.what_if.engine import Course, Halfway, Replayed, read_course, replayed
from dialogs.learning.what_if.variants import Variant
from dialogs.learning.writes import what_if as service
from dialogs.models import Dialog
from health.models import LlmPrice, WhatIf

logger = logging.getLogger(__name__)
# The worker of compactions is one. A live one waits that long for what nobody needs at once, and until a dialog is read
# and the compaction under way is done: no slice begins another after its time.
SLICE_SECONDS = 1.0
# In a row: a replay that another slice goes on with.
HALFWAY = "halfway"
A_MILLION = 1_000_000
Row = dict[str, Any]


def first_row(variant: Variant) -> Row:
    return {"limit": variant.limit, "chain": list(variant.chain)}


def perform(what_if_id: int, *, seconds: float = SLICE_SECONDS) -> bool:
    """Go on with it for a slice. True: there is more to do."""
    held = service.claim(what_if_id)
    if held is None:
        return False
    try:
        return _slice(WhatIf.objects.get(pk=what_if_id), held, until=monotonic() + seconds)
    except Exception:
        logger.exception("What if %s failed", what_if_id)
        service.finish(held, WhatIf.Status.FAILED)
        return False


def _slice(row: WhatIf, held: service.Claim, *, until: float) -> bool:
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
        if not service.keep(held, rows=row.rows, done=done):
            return False
        if monotonic() > until and done < row.total:
            return service.leave(held)
    service.finish(held, WhatIf.Status.FINISHED)
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
