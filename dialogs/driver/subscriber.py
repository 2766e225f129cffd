"""Who hears a turn in the process that drives it. Browsers do not subscribe: they are told by broadcasts.

`/v1` drives a client's turn in the web process, and sends on what it hears.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from dialogs.models import Generation
from dialogs.providers.base import ChatRequest, ProviderError, ProviderSettings, StreamEvent
from health.models import CompactionRun


class Subscriber:
    """One that hears nothing and never leaves. Nothing here may wait, and only `conclude` may fail."""

    # A provider that fails is asked again after a while. Clients do that themselves.
    tries_again = True

    @property
    def has_left(self) -> bool:
        return False

    def head_start(self, request: ChatRequest, settings: ProviderSettings) -> AsyncGenerator[StreamEvent, None] | None:
        """The answer to this very request, where it was asked for already; each piece of it was heard."""
        return None

    def hear(self, event: StreamEvent) -> None:
        """A piece of the answer. What is cut for a compaction is gone on with: all pieces make one answer."""

    def compacting(self) -> None:
        """Before the next request the context is made smaller."""

    def compacted(self, run: CompactionRun | None) -> None:
        """That is over, however it ended. None: it was over already."""

    def failed(self, error: ProviderError | None) -> None:
        """A request failed; None where it was a fault of ours."""

    def halted(self) -> None:
        """A person ended the turn before the next request."""

    def conclude(self, generation: Generation, *, has_calls: bool) -> None:
        """The last answer of a client's turn is being recorded, on a thread of the database. What is stored here is
        stored with it; a failure costs nothing but that."""

    async def leaving(self) -> None:
        """Returns when nobody waits for the answer any more."""
        await asyncio.Future()


NOBODY = Subscriber()
