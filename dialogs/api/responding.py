"""The response of `/v1`: a stream of our own chunks, or one body.

Nothing is sent before the first piece, for at most a second: until then an error gets its own HTTP status.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dialogs.api import chunks
from dialogs.api.canonical import ClientCall
from dialogs.api.chunks import Envelope
from dialogs.api.errors import ApiError, failure, internal, only_called, stopped
from dialogs.api.listening import AnswerText, ClientPiece, Notice, ThoughtText, join_pieces
from dialogs.api.turn import ClientTurn
from dialogs.common.threads import in_db
from dialogs.compaction.reads.compaction import newest_run
from dialogs.models import ApiKey, Generation
from health.monitor.levels import Usage, UsageUnavailable

KEEP_ALIVE_SECONDS = 10.0
# The longest time without a byte: a comment is sent then, so that people and proxies see a sign of life.
COMPACTING_SECONDS = 1.0
Notices = ApiKey.Notices


def envelope(model: str) -> Envelope:
    return Envelope(id=f"chatcmpl-{uuid.uuid4().hex}", created=int(time.time()), model=model)


def failed(turn: ClientTurn) -> ApiError | None:
    """The ApiError of a turn that ended without an answer."""
    if turn.problem:
        return turn.problem
    last = turn.outcome.generation if turn.outcome else None
    if turn.listener.is_halted or (last is not None and last.status == Generation.Status.STOPPED):
        return stopped()
    if turn.listener.called_in_vain:
        return only_called(turn.listener.called_in_vain)
    if last is not None and last.status == Generation.Status.FINISHED:
        return None
    return failure(last, turn.listener.error) if last else internal()


@dataclass
class PieceWriter:
    """Writes pieces as bytes of chunks, notices in the way that the client chose. Knows whether text was sent yet."""

    sent: Envelope
    how: str
    has_said: bool = False

    def pieces(self, waiting: Sequence[ClientPiece]) -> bytes:
        return b"".join(map(self._piece, join_pieces(waiting)))

    def _piece(self, heard: ClientPiece) -> bytes:
        match heard:
            case AnswerText(text):
                self.has_said = True
                return self.sent.text(text)
            case ThoughtText(text):
                return self.sent.thought(text)
            case Notice(words, done):
                return self.notice(words, done=done)

    def notice(self, words: str, *, done: bool) -> bytes:
        match self.how:
            case Notices.EVENT:
                return self.sent.status(words, done=done)
            case Notices.REASONING:
                return self.sent.thought(f"{words}\n")
            case Notices.CONTENT:
                return self.sent.text(chunks.as_content(words, has_said=self.has_said))
            case _:
                return b""


async def stream(turn: ClientTurn, sent: Envelope, how: str, *, wants_usage: bool) -> AsyncGenerator[bytes, None]:
    """Every byte of a streamed answer. Whoever closes it has left."""
    teller = PieceWriter(sent, how)
    try:
        async for said in _said(turn, teller):
            yield said
        for piece in _ending(turn, teller, wants_usage=wants_usage):
            yield piece
    finally:
        turn.listener.leave()


async def _said(turn: ClientTurn, teller: PieceWriter) -> AsyncGenerator[bytes, None]:
    """The chunks: the role first, then all waiting pieces together; a comment after a while without any."""
    first = teller.sent.role()
    if not turn.listener.has_begun:
        yield first
        first = b""
    while not turn.listener.is_over:
        is_compacting = turn.listener.is_compacting
        try:
            async with asyncio.timeout(COMPACTING_SECONDS if is_compacting else KEEP_ALIVE_SECONDS):
                waiting = await turn.listener.waiting()
        except TimeoutError:
            yield await _comment(turn)
        else:
            said = first + teller.pieces(waiting)
            first = b""
            if turn.listener.is_compacting:
                said += chunks.as_comment()
            if said:
                yield said


async def _comment(turn: ClientTurn) -> bytes:
    """Something is being waited for; while it is a compaction, how much there is to compact."""
    if not turn.listener.is_compacting:
        return chunks.KEEP_ALIVE
    run = await in_db(newest_run)(turn.dialog_id) if turn.dialog_id else None
    return chunks.as_comment(run.tokens_now, run.limit_tokens) if run else chunks.as_comment()


def _ending(turn: ClientTurn, teller: PieceWriter, *, wants_usage: bool) -> Iterator[bytes]:
    error = failed(turn)
    if error:
        yield chunks.event(error.as_json())
        return
    if _is_full(turn):
        yield teller.notice(_last(turn).error_message or chunks.FULL, done=True)
    usage = usage_of(reported_of(_last(turn))) if wants_usage else None
    yield from chunks.ending(teller.sent, *_calls_and_reason(turn), usage, internals(turn))


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
    """Dominds' own facts about the answer, which other clients ignore."""
    outcome = turn.outcome
    return {
        "dialog": str(turn.dialog_id),
        "level": outcome.level if outcome else "",
        "compactions": turn.listener.compactions,
        "generations": outcome.generations if outcome else 0,
    }


def usage_of(reported: Usage | UsageUnavailable) -> dict[str, Any] | None:
    """In OpenAI's form; None where the provider did not report it: nothing is estimated here."""
    if not isinstance(reported, Usage):
        return None
    usage: dict[str, Any] = {
        "prompt_tokens": reported.prompt_tokens,
        "completion_tokens": reported.completion_tokens,
        "total_tokens": reported.total_tokens,
    }
    if reported.cached_tokens is not None:
        usage["prompt_tokens_details"] = {"cached_tokens": reported.cached_tokens}
    return usage


def reported_of(generation: Generation) -> Usage | UsageUnavailable:
    prompt, answered = generation.prompt_tokens, generation.completion_tokens or 0
    if prompt is None:
        return UsageUnavailable()
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=answered,
        total_tokens=generation.total_tokens or prompt + answered,
        cached_tokens=generation.cached_tokens,
    )
