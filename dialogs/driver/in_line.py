"""Waiting for a slot of the provider, with the place in line shown, until a person stops it or nobody waits for it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from dialogs.common.threads import in_db
from dialogs.driver.subscriber import Subscriber
from dialogs.driver.writes.turns import stand_in_line
from dialogs.models import Provider
from dialogs.providers.slots import slot
from dialogs.turns.reads.turns import is_stop_requested
from dialogs.turns.writes.lease import Claim


class LeftTheLine(Exception):
    """Whoever wanted the answer wants it no longer."""


class Waiting:
    """One turn's wait. `place` is what browsers were told last; `waited` is whether there was one."""

    def __init__(self, claim: Claim, subscriber: Subscriber) -> None:
        self._claim, self._subscriber = claim, subscriber
        self._place: int | None = None
        self.waited = False

    async def at(self, place: int) -> None:
        if self._subscriber.has_left or await in_db(is_stop_requested)(self._claim.dialog_id):
            raise LeftTheLine
        self.waited = True
        await self._show(place)

    async def over(self) -> None:
        await self._show(None)

    async def _show(self, place: int | None) -> None:
        if place != self._place:
            await in_db(stand_in_line)(self._claim, place)
        self._place = place


@asynccontextmanager
async def provider_slot(provider: Provider, claim: Claim, subscriber: Subscriber) -> AsyncIterator[bool]:
    """Inside, the provider has a slot for us. Gives whether we had to wait for it. Raises LeftTheLine."""
    waiting = Waiting(claim, subscriber)
    async with AsyncExitStack() as held:
        try:
            await held.enter_async_context(slot(provider.name, most=provider.max_concurrent, on_wait=waiting.at))
        finally:
            await waiting.over()
        yield waiting.waited
