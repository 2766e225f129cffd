"""What happens once an hour: the critic looks, and the log of rewards loses what is too old.

Redis holds the moment of the last beat for an hour. Whoever writes it has the beat, so that none is doubled; where it
is not there, a beat is due, so that one that was missed is caught up, once.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from django.conf import settings
from django.utils import timezone
from redis import Redis

from dialogs.learning.writes.proposals import make_proposals
from health import rewards
from health.configured import context_config

logger = logging.getLogger(__name__)
KEY = "dominds:beat:learning"
EVERY_SECONDS, AFTER_FAILURE_SECONDS = 3600, 300
PATIENCE_SECONDS = 2.0


def is_due() -> bool:
    with _redis() as redis:
        return not redis.exists(KEY)


def keep_beat() -> bool:
    """Do what is due, if nobody else has. What fails is tried again sooner than in an hour."""
    with _redis() as redis:
        if not redis.set(KEY, timezone.now().isoformat(), nx=True, ex=EVERY_SECONDS):
            return False
        try:
            look()
        except Exception:
            redis.expire(KEY, AFTER_FAILURE_SECONDS)
            raise
    return True


def look() -> None:
    now = timezone.now()
    for proposal in make_proposals(now=now):
        logger.info("The critic proposes %s", proposal)
    gone = rewards.prune(before=now - timedelta(days=context_config().reward_log_days))
    if gone:
        logger.info("%s lines left the log of rewards", gone)


def _redis() -> Redis:
    return Redis.from_url(settings.REDIS_URL, socket_timeout=PATIENCE_SECONDS, socket_connect_timeout=PATIENCE_SECONDS)
