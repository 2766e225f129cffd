"""The answers that come on an event loop just now: one look at the database for all of them, every so often.

It keeps what has come of each, and sees which of them nobody wants any more. Were each to look by itself, fifty answers
would do so two hundred times a second.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection
from dataclasses import dataclass, field
from uuid import UUID
from weakref import WeakKeyDictionary

from dialogs.common.outages import persistent
from dialogs.common.threads import in_db
from dialogs.driver.live import LiveAnswer
from dialogs.turns.reads.turns import unwanted
from dialogs.turns.writes import generations
from dialogs.turns.writes.generations import Partial
from dialogs.turns.writes.lease import Claim

LOOK_EVERY_SECONDS = 0.3
FLUSH_EVERY_SECONDS = 1.0


@dataclass(eq=False)
class Coming:
    """An answer that comes; `ended` once a person asks to stop it, or a look failed."""

    claim: Claim
    generation_id: int
    live: LiveAnswer
    ended: asyncio.Future[None]
    flushed_at: float = field(default_factory=time.monotonic)
    flushed_seq: int = 0
    # How much of answer and thoughts the database was last given.
    given: tuple[int, int] = (0, 0)

    @property
    def is_due(self) -> bool:
        return self.live.seq > self.flushed_seq and time.monotonic() - self.flushed_at >= FLUSH_EVERY_SECONDS

    def partial(self) -> Partial:
        """What has come so far, which the database is given now."""
        self.flushed_at, self.flushed_seq = time.monotonic(), self.live.seq
        text, reasoning = self.live.text, self.live.reasoning
        return Partial(self.claim, self.generation_id, text=text, reasoning=reasoning, seq=self.flushed_seq)

    def is_kept(self, partial: Partial) -> None:
        self.live.kept, self.given = self.given, (len(partial.text), len(partial.reasoning))


class UnderWay:
    """What comes on one event loop. It looks for as long as anything does."""

    def __init__(self) -> None:
        self._coming: set[Coming] = set()
        self._looking: asyncio.Task[None] | None = None

    async def until_stopped(self, claim: Claim, generation_id: int, live: LiveAnswer) -> None:
        """Returns when a person asks to stop this answer; until then it is kept about once a second."""
        coming = Coming(claim, generation_id, live, asyncio.get_running_loop().create_future())
        self._coming.add(coming)
        if self._looking is None:
            self._looking = asyncio.create_task(self._look())
        try:
            await coming.ended
        finally:
            self._coming.discard(coming)
            if not self._coming and self._looking:
                self._looking.cancel()
                self._looking = None

    async def _look(self) -> None:
        """While the database is away the answers go on. One that cannot be kept takes no other along."""
        find, flush = persistent(in_db(unwanted)), persistent(in_db(generations.flush))
        while True:
            await asyncio.sleep(LOOK_EVERY_SECONDS)
            coming = list(self._coming)
            try:
                self._stop(await find([one.claim.dialog_id for one in coming]), coming)
            except Exception as error:
                _fail(error, coming)
            for one in [one for one in coming if one.is_due]:
                partial = one.partial()
                try:
                    await flush(partial)
                except Exception as error:
                    _fail(error, [one])
                else:
                    one.is_kept(partial)

    @staticmethod
    def _stop(dialog_ids: Collection[UUID], coming: Collection[Coming]) -> None:
        for one in coming:
            if one.claim.dialog_id in dialog_ids and not one.ended.done():
                one.ended.set_result(None)


def _fail(error: Exception, coming: Collection[Coming]) -> None:
    for one in coming:
        if not one.ended.done():
            one.ended.set_exception(error)


_of_loops: WeakKeyDictionary[asyncio.AbstractEventLoop, UnderWay] = WeakKeyDictionary()


async def until_stopped(claim: Claim, generation_id: int, live: LiveAnswer) -> None:
    """Keep what has come of an answer about once a second; return when a person asks to stop it."""
    under_way = _of_loops.setdefault(asyncio.get_running_loop(), UnderWay())
    await under_way.until_stopped(claim, generation_id, live)
