"""The answer as it leaves: a stream of our own chunks, or one body.

Nothing is sent until the first piece is there or a second has passed: until then an error is a real HTTP error.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from typing import Any

from dialogs.api import chunks, notices
from dialogs.api.chunks import Envelope
from dialogs.api.errors import ApiError, internal
from dialogs.api.failures import failure
from dialogs.api.listening import Heard, Notice, Said, Thought, joined
from dialogs.api.reporting import reported_of, usage_of
from dialogs.api.turn import ClientTurn
from dialogs.clients import ClientCall
from dialogs.models import ApiKey, Generation

KEEP_ALIVE_SECONDS = 10.0
Notices = ApiKey.Notices


def envelope(model: str) -> Envelope:
    return Envelope(id=f"chatcmpl-{uuid.uuid4().hex}", created=int(time.time()), model=model)


def failed(turn: ClientTurn) -> ApiError | None:
    """Why there is no answer, once the turn has ended."""
    if turn.problem:
        return turn.problem
    last = turn.outcome.generation if turn.outcome else None
    if last is not None and last.status in (Generation.Status.FINISHED, Generation.Status.STOPPED):
        return None
    return failure(last, turn.listener.error) if last else internal()


async def stream(turn: ClientTurn, sent: Envelope, how: str, *, wants_usage: bool) -> AsyncGenerator[bytes, None]:
    """Every byte of a streamed answer. Whoever closes it has left."""
    place = _Place()
    try:
        async for said in _said(turn, sent, how, place):
            yield said
        for piece in _ending(turn, sent, how, place, wants_usage=wants_usage):
            yield piece
    finally:
        turn.listener.leave()


@dataclass
class _Place:
    """Where a client's reader is: a notice in the middle of the answer's words stands apart from them."""

    in_answer: bool = False


async def _said(turn: ClientTurn, sent: Envelope, how: str, place: _Place) -> AsyncGenerator[bytes, None]:
    """What is heard, all that waits at once; a comment where nothing was for a while. The role goes first."""
    first = sent.role()
    if not turn.listener.has_begun:
        yield first
        first = b""
    while not turn.listener.is_over:
        try:
            async with asyncio.timeout(KEEP_ALIVE_SECONDS):
                waiting = await turn.listener.waiting()
        except TimeoutError:
            yield chunks.KEEP_ALIVE
        else:
            said = first + b"".join(_piece(heard, sent, how, place) for heard in joined(waiting))
            first = b""
            if said:
                yield said


def _piece(heard: Heard, sent: Envelope, how: str, place: _Place) -> bytes:
    match heard:
        case Said(text):
            place.in_answer = True
            return sent.text(text)
        case Thought(text):
            return sent.thought(text)
        case Notice(words, done):
            return _notice(words, sent, how, place, done=done)


def _notice(words: str, sent: Envelope, how: str, place: _Place, *, done: bool) -> bytes:
    match how:
        case Notices.EVENT:
            return sent.status(words, done=done)
        case Notices.REASONING:
            return sent.thought(f"{words}\n")
        case Notices.CONTENT:
            in_answer, place.in_answer = place.in_answer, False
            return sent.text(notices.as_content(words, in_mid_answer=in_answer))
        case _:
            return b""


def _ending(turn: ClientTurn, sent: Envelope, how: str, place: _Place, *, wants_usage: bool) -> Iterator[bytes]:
    error = failed(turn)
    if error:
        yield chunks.event(error.as_json())
        return
    if _is_full(turn):
        yield _notice(_last(turn).error_message or notices.FULL, sent, how, place, done=True)
    usage = usage_of(reported_of(_last(turn))) if wants_usage else None
    yield from chunks.ending(sent, *_calls_and_reason(turn), usage, internals(turn))


def whole(turn: ClientTurn, sent: Envelope) -> dict[str, Any]:
    """The body for a request that wants no stream."""
    calls, reason = _calls_and_reason(turn)
    message = chunks.message(turn.listener.text, turn.listener.thoughts, calls)
    return sent.whole(message, finish_reason=reason, usage=usage_of(reported_of(_last(turn))), ours=internals(turn))


def _last(turn: ClientTurn) -> Generation:
    if turn.outcome is None or turn.outcome.generation is None:
        raise internal()
    return turn.outcome.generation


def _calls_and_reason(turn: ClientTurn) -> tuple[tuple[ClientCall, ...], str]:
    calls = turn.outcome.calls if turn.outcome else ()
    return calls, chunks.finish_reason(_last(turn).finish_reason, calls=bool(calls))


def _is_full(turn: ClientTurn) -> bool:
    last = _last(turn)
    return last.status == Generation.Status.FINISHED and bool(last.message and last.message.cut_short)


def internals(turn: ClientTurn) -> dict[str, Any]:
    """What only Dominds knows. A client that does not look for it loses nothing."""
    outcome = turn.outcome
    return {
        "dialog": str(turn.dialog_id),
        "level": outcome.level if outcome else "",
        "compactions": turn.listener.compactions,
        "generations": outcome.generations if outcome else 0,
    }
