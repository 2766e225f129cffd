"""A worker's claim on a row: renewed while it works, over when it expires.

One that ends later than any new claim would is from before the clock was set back, and also over.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Q
from django.utils import timezone

CLAIM_SECONDS = 30
# How far another machine's clock may be ahead.
AHEAD = timedelta(minutes=10)


def claimed_until() -> datetime:
    """The end of a claim that is made or renewed now."""
    return timezone.now() + timedelta(seconds=CLAIM_SECONDS)


def is_over() -> Q:
    return Q(claimed_until__lte=timezone.now()) | Q(claimed_until__gt=claimed_until() + AHEAD)


def holds(until: datetime | None) -> bool:
    return until is not None and timezone.now() < until <= claimed_until() + AHEAD
