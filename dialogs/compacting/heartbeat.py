"""Holding a run's claim while its worker is busy: a pruning model may think for minutes between two steps."""

from __future__ import annotations

import logging
import threading
from types import TracebackType

from django.db import connections

from dialogs.services.compaction import CLAIM_SECONDS, RunClaim, renew

logger = logging.getLogger(__name__)


class Heartbeat:
    """Renews a claim from a thread of its own. A process that dies stops renewing, and another takes the run up."""

    def __init__(self, claim: RunClaim) -> None:
        self.claim = claim
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name=f"compaction-{claim.run_id}", daemon=True)

    def __enter__(self) -> Heartbeat:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _beat(self) -> None:
        while not self._over.wait(CLAIM_SECONDS / 3):
            try:
                renew(self.claim)
            except Exception as error:  # the database is away for a moment: the claim lasts for two more beats
                logger.warning("Could not renew compaction %s: %s", self.claim.run_id, error)
            finally:
                connections.close_all()
