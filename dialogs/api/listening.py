"""The queue between a turn and the response to its client: pieces wait here until the response sends them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby

from dialogs.api import chunks
from dialogs.driver.subscriber import HeadStart, Subscriber
from dialogs.models import Generation
from dialogs.providers.base import (
    ChatRequest,
    ProviderError,
    ProviderSettings,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
    ToolCallReady,
)
from health.models import CompactionRun


@dataclass(frozen=True)
class AnswerText:
    text: str


@dataclass(frozen=True)
class ThoughtText:
    text: str


@dataclass(frozen=True)
class Notice:
    """A notice for the client. `done`: what it announced has ended; clients that show notices wait for this."""

    words: str
    done: bool


ClientPiece = AnswerText | ThoughtText | Notice


def join_pieces(heard: Iterable[ClientPiece]) -> Iterator[ClientPiece]:
    """Join neighbouring pieces of one type, so that what has come together is sent as one chunk."""
    for _kind, alike in groupby(heard, type):
        run = list(alike)
        match run[0]:
            case AnswerText():
                yield AnswerText(_words(run))
            case ThoughtText():
                yield ThoughtText(_words(run))
            case _:
                yield from run


def _words(run: Iterable[ClientPiece]) -> str:
    return "".join(one.text for one in run if isinstance(one, AnswerText | ThoughtText))


class Listener(Subscriber):
    """The subscriber of one client's turn, until `is_over`. Used on one event loop."""

    tries_again = False

    def __init__(self) -> None:
        self.is_over = False
        # What is stored with the last answer: its generation, and whether it calls tools.
        self.concluding: Callable[[Generation, bool], None] | None = None
        self.error: ProviderError | None = None
        self.is_halted = False
        # The tool that was called last, if the turn was ended because of the model's calls.
        self.called_in_vain = ""
        self.compactions = 0
        self._left = asyncio.Event()
        self._head_start: HeadStart | None = None
        self._said: list[str] = []
        self._thought: list[str] = []
        self._has_called = False
        self._called = ""
        self._waiting = False
        # None in the queue ends the turn.
        self._heard: asyncio.Queue[ClientPiece | None] = asyncio.Queue()
        self._begun = asyncio.Event()

    @property
    def has_left(self) -> bool:
        """Whether the client has left; not while the answer to its head start must still be stored."""
        return self._left.is_set() and not (self._head_start and self._head_start.is_owed)

    def begin_head_start(self, request: ChatRequest, settings: ProviderSettings) -> None:
        self._head_start = HeadStart(request, settings, self)

    def head_start(self, request: ChatRequest, settings: ProviderSettings) -> AsyncGenerator[StreamEvent, None] | None:
        return self._head_start.take_over(request, settings) if self._head_start else None

    async def drop_head_start(self) -> None:
        if self._head_start:
            await self._head_start.drop()

    @property
    def text(self) -> str:
        """The whole answer, over all its generations."""
        return "".join(self._said)

    @property
    def thoughts(self) -> str:
        return "".join(self._thought)

    @property
    def is_compacting(self) -> bool:
        return self._waiting

    @property
    def has_begun(self) -> bool:
        return self._begun.is_set()

    async def begun(self, patience: float) -> None:
        """Returns when a piece has come, the turn is over, or so many seconds have passed."""
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await self._begun.wait()

    async def waiting(self) -> list[ClientPiece]:
        """All waiting pieces, as soon as there is one; after the last, `is_over` is true."""
        found = [await self._heard.get()]
        while not self._heard.empty():
            found.append(self._heard.get_nowait())
        self.is_over = None in found
        return [heard for heard in found if heard is not None]

    def leave(self) -> None:
        self._left.set()

    async def leaving(self) -> None:
        await self._left.wait()

    def hear(self, event: StreamEvent) -> None:
        match event:
            case TextDelta(text):
                self._say(text)
            case ToolCallReady(call):
                # If the client gets to hear more, it was a call of ours: what follows is a paragraph of its own.
                self._has_called, self._called = True, call.name
            case ReasoningDelta(text):
                self._thought.append(text)
                self._put(ThoughtText(text))

    def _say(self, text: str) -> None:
        if self._has_called and text.strip():
            self._has_called = False
            text = f"\n\n{text.lstrip()}" if self.text.strip() else text
        self._said.append(text)
        self._put(AnswerText(text))

    def compacting(self) -> None:
        self._waiting = True
        self._put(Notice(chunks.COMPACTING, done=False))

    def compacted(self, run: CompactionRun | None) -> None:
        applied = run is not None and run.status == CompactionRun.Status.APPLIED
        words = chunks.compacted(run.estimated_before, run.estimated_after) if run and applied else chunks.NOT_COMPACTED
        self.compactions += applied
        self._waiting = False
        self._put(Notice(words, done=True))

    def conclude(self, generation: Generation, *, has_calls: bool) -> None:
        if self.concluding:
            self.concluding(generation, has_calls)

    def failed(self, error: ProviderError | None) -> None:
        self.error = error

    def halted(self) -> None:
        self.is_halted = True

    def rounds_ended(self) -> None:
        self.called_in_vain = self._called or "a tool"

    def end(self) -> None:
        """End the turn. A notice without its `done` gets it."""
        if self._waiting:
            self.compacted(None)
        self._put(None)

    def _put(self, heard: ClientPiece | None) -> None:
        self._heard.put_nowait(heard)
        self._begun.set()
