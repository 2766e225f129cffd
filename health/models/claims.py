"""A worker's claim on a row: renewed while it works, over when it runs out.

One that is to last longer than any does is from before the clock went back, and over too.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Q
from django.utils import timezone

CLAIM_SECONDS = 30
# So far the clock of another machine may be ahead.
AHEAD = timedelta(minutes=10)


def claimed_until() -> datetime:
    """The end of a claim that is made or renewed now."""
    return timezone.now() + timedelta(seconds=CLAIM_SECONDS)


def is_over() -> Q:
    return Q(claimed_until__lte=timezone.now()) | Q(claimed_until__gt=claimed_until() + AHEAD)


def holds(until: datetime | None) -> bool:
    return until is not None and timezone.now() < until <= claimed_until() + AHEAD
