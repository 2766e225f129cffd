"""Records one provider call: its start, its text while it streams, and its end in one of four ways."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any

from django.db import InterfaceError, OperationalError, transaction
from django.db.models import BigIntegerField, CharField, QuerySet, TextField
from django.utils import timezone

from dialogs.llms.guard import bounds_of, guard_of, is_off, may_be_guarded
from dialogs.llms.reads import configured
from dialogs.models import Blob, Course, Dialog, Generation, Message
from dialogs.models.agent import WhenFull
from dialogs.models.dialog import OwnTools, PausedBy
from dialogs.models.message import MessageOrigin, Role
from dialogs.providers.base import ContextOverflow, ToolCall
from dialogs.transcript.writes.dialog_row import add_message, close_answer, save
from dialogs.turns.prompts import DONE_MARK
from dialogs.turns.writes import autonomous, remediation
from dialogs.turns.writes.events import Code, log
from dialogs.turns.writes.lease import Claim, fenced, let_go
from dialogs.turns.writes.tool_calls import add_calls, hand_over
from dominds.prepared import Many, prepared, prepared_update
from dominds.rows import insert, insert_or_ignore, new, update
from health.models import HealthReading
from health.monitor.levels import Level, Usage, UsageUnavailable
from health.services import record_reading


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The answer of one generation, whole or cut short."""

    text: str
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage | UsageUnavailable = field(default_factory=UsageUnavailable)
    usage_raw: dict[str, Any] | None = None
    finish_reason: str = ""
    first_token_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Sent:
    """The request of one generation, by reference: message ids, and texts by the name under which they are stored."""

    message_ids: tuple[int, ...]
    texts: Mapping[str, str]
    options: dict[str, Any]
    # The compaction run whose view was sent.
    view: int | None = None
    # Messages in that view only because a person pinned them after the run.
    kept: tuple[int, ...] = ()
    # Messages that the client sent shortened, or without images.
    shortened: Sequence[int] = ()
    # The estimated tokens of the request, where the dialog is guarded.
    estimated_tokens: int | None = None
    # The maximum of the answer, where it was lowered so that prompt and answer fit the window.
    asked_tokens: int | None = None


@dataclass(frozen=True)
class PartialAnswer:
    """The answer so far; `seq` counts its pieces."""

    held: Claim
    generation_id: int
    text: str
    reasoning: str
    seq: int


EMPTY = "empty_answer"


def was_empty(leaf: Message) -> bool:
    """Was the model's last answer to this message empty?"""
    last = Generation.objects.filter(prompt_leaf=leaf).order_by("-pk").first()
    return last is not None and last.error_code == EMPTY


def prompt_named_by_refusal(dialog: Dialog) -> int | None:
    """The due request's tokens as the provider counted them when it refused the last try."""
    last = Generation.objects.filter(prompt_leaf_id=dialog.current_leaf_id).order_by("-pk").first()
    if last is None or last.status != Generation.Status.FAILED:
        return None
    return last.manifest.get("prompt")


def keep_blobs(texts: Iterable[str]) -> dict[str, str]:
    """Store texts under their hashes, each once; SHA-256 by text.

    Locked, so that `trash` cannot drop one before its use commits, and in the order of the hashes, as `trash` does:
    two transactions that share some of them then cannot wait for each other. Any number may hold the lock at once:
    all calls of an agent begin with the same instructions.
    """
    hashes = {text: hashlib.sha256(text.encode()).hexdigest() for text in texts}
    missing = {sha256: text for text, sha256 in sorted(hashes.items(), key=itemgetter(1))}
    # A text that another transaction is storing can be seen and locked once that one has ended.
    while missing:
        for (sha256,) in _locked_blobs(list(missing)):
            del missing[sha256]
        for sha256, text in missing.items():
            insert_or_ignore(new(Blob, sha256=sha256, content=text))
    return hashes


@prepared(Many(CharField()), is_shared=True)
def _locked_blobs(hashes: Any) -> QuerySet[Blob, Any]:
    return Blob.objects.select_for_update().filter(sha256__in=hashes).order_by("sha256").values_list("sha256")


class Outdated(Exception):
    """The dialog has changed since the request was read."""


@transaction.atomic(savepoint=False)
def begin(held: Claim, *, attempt: int, sent: Sent, known: Dialog) -> Generation:
    """Record the call before it is made, so that it is known even if the worker dies. `known` is the dialog that was
    read for it. Raises Outdated and LeaseLost."""
    row = fenced(held, known=known)
    if row.version != known.version and not known.is_client_driven:
        raise Outdated
    generation = add_call(row, held, attempt=attempt, sent=sent)
    save(row)
    return generation


def add_call(row: Dialog, held: Claim, *, attempt: int, sent: Sent, number: int | None = None) -> Generation:
    """The record of a call. The row is locked; the caller saves it, so that browsers are notified."""
    leaf = _leaf(row)
    kept = keep_blobs(filter(None, sent.texts.values()))
    return add_generation(
        row,
        held,
        leaf,
        number=number,
        attempt=attempt,
        manifest={
            "messages": list(sent.message_ids),
            "options": sent.options,
            **({"view": sent.view} if sent.view else {}),
            **({"kept": list(sent.kept)} if sent.kept else {}),
            **({"shortened": list(sent.shortened)} if sent.shortened else {}),
            **({"estimated": sent.estimated_tokens} if sent.estimated_tokens else {}),
            **({"asked": sent.asked_tokens} if sent.asked_tokens else {}),
            **{name: kept[text] for name, text in sent.texts.items() if text},
        },
    )


def add_generation(
    row: Dialog, held: Claim, leaf: Message, *, number: int | None = None, **recorded: Any
) -> Generation:
    """Add a try to answer `leaf`, as the next of its course if no number is given; `recorded` are further columns."""
    generation = new(
        Generation,
        dialog=row,
        course=leaf.course,
        number=number or _next_number(leaf.course),
        turn=leaf.turn,
        llm=row.llm,
        llm_name=row.llm.slug,
        prompt_leaf=leaf,
        fencing_token=held.token,
        **recorded,
    )
    insert(generation)
    return generation


def _next_number(course: Course) -> int:
    """The highest number plus one, as imported courses may have gaps."""
    return max((number for (number,) in _highest_number(course.pk)), default=0) + 1


@prepared(BigIntegerField())
def _highest_number(course_id: Any) -> QuerySet[Generation, Any]:
    return Generation.objects.filter(course=course_id).order_by("-number").values_list("number")[:1]


def _leaf(row: Dialog) -> Message:
    if row.current_leaf is None:
        raise ValueError(f"Dialog {row.pk} has nothing to answer.")
    return row.current_leaf


def clients(dialog: Dialog) -> Dialog | None:
    """The dialog if it is a client's: only the client changes it while it is driven, so it is not read again."""
    return dialog if dialog.is_client_driven else None


def flush_each(partials: Sequence[PartialAnswer]) -> list[Exception | None]:
    """Store the answers so far, in case this worker dies. Returns each one's error or None. Raises InterfaceError and
    OperationalError if the database is away."""
    return [_flushed(partial) for partial in partials]


def _flushed(partial: PartialAnswer) -> Exception | None:
    """Store the partial text by a conditional update, fenced by the lease's token."""
    try:
        _flush(partial.generation_id, partial.held.token, partial.text, partial.reasoning, partial.seq)
    except (InterfaceError, OperationalError):
        raise
    except Exception as error:
        return error
    return None


@prepared_update(BigIntegerField(), BigIntegerField(), TextField(), TextField(), BigIntegerField())
def _flush(pk: Any, token: Any, text: Any, reasoning: Any, seq: Any) -> tuple[QuerySet[Generation], dict[str, Any]]:
    running = Generation.objects.filter(pk=pk, fencing_token=token, status=Generation.Status.RUNNING)
    return running, {"partial_text": text, "partial_reasoning": reasoning, "stream_seq": seq}


@transaction.atomic(savepoint=False)
def finish(held: Claim, *, generation: Generation, answer: Answer, cut_short: bool = False) -> Message:
    """Record the whole answer, its usage, its health, and what remediation makes of that.

    After an answer with calls the turn goes on: their results and another answer are due. A client's dialog is released
    with its answer: nobody adds to it before the client does.
    """
    row = fenced(held, known=clients(generation.dialog))
    message = add_answer(row, generation, answer, cut_short=cut_short)
    close(generation, Generation.Status.FINISHED, answer, message)
    read_health(row, generation, answer)
    if not row.is_client_driven:
        _count(row, answer, offered="tools" in generation.manifest and row.own_tools != OwnTools.OFF)
    # An answer without calls counts too: an agent without tools can be in a loop.
    row.unchecked_calls += max(1, len(answer.calls))
    if answer.calls:
        add_calls(message, answer.calls)
    if answer.calls and not (row.is_client_driven and hand_over(row, message)):
        save(row, "current_leaf", "last_seq", "unchecked_calls")
    else:
        if not row.is_client_driven:
            remediation.close_prompts(generation.course)
        rests = row.is_client_driven and not cut_short
        close_answer(row, "unchecked_calls", *(let_go(row, held) if rests else ()))
    return message


def _count(row: Dialog, answer: Answer, *, offered: bool) -> None:
    """Autonomous mode: count the generation; an agent without tools says in its last line that it is done."""
    autonomous.count_generation(row)
    lines = answer.text.strip().splitlines()
    if not offered and lines and lines[-1].strip(" *_`.") == DONE_MARK:
        autonomous.finish_run(row, summary="\n".join(lines[:-1]))


@transaction.atomic
def stop(held: Claim, *, generation: Generation, answer: Answer) -> Message | None:
    """Record an answer that a person stopped; its text so far, if any, becomes a message."""
    row = fenced(held)
    message = add_answer(row, generation, answer, cut_short=True) if answer.text else None
    close(generation, Generation.Status.STOPPED, answer, message)
    read_health(row, generation, answer)
    remediation.close_prompts(generation.course)
    row.stop_requested = False
    close_answer(row, "stop_requested")
    return message


@transaction.atomic
def fail(held: Claim, *, generation: Generation, answer: Answer, code: str, error: str, retry_in: float | None) -> None:
    """Record a failed try. It has no reading: the last good one stays. If `retry_in` is None the turn ends.

    A prompt that no longer fits is not tried again unchanged: it is compacted if the dialog has a guard. Otherwise a
    new course becomes due, unless this one has no answer yet: the next would not fit either.
    """
    row = fenced(held)
    generation.error_code, generation.error_message = code, error
    if code == ContextOverflow.code:
        retry_in = _after_overflow(row, generation, retry_in)
    if retry_in is not None:
        generation.retry_at = timezone.now() + timedelta(seconds=retry_in)
    close(generation, Generation.Status.FAILED, answer, None)
    if retry_in is None:
        row.paused_by = PausedBy.FAILURE
        close_answer(row, "paused_by")
    else:
        save(row)


def _after_overflow(row: Dialog, generation: Generation, retry_in: float | None) -> float | None:
    """Seconds until a refused request is tried again: 0 if it can be compacted; None (ends the turn) if that is off.

    Without a guard, as not even a bound was learned, a new course may help a person's dialog.
    """
    guard = guard_of(row)
    estimated = generation.manifest.get("estimated")
    log(Code.PROVIDER_OVERFLOW, row, estimated=estimated, limit=guard.limit if guard else None)
    if guard:
        return None if guard.off else 0.0
    if row.is_client_driven or is_off(row) or not _has_answers(generation.course):
        return retry_in
    remediation.record_overflow(generation.course)
    return 0.0


def _has_answers(course: Course) -> bool:
    return Generation.objects.filter(course=course, status=Generation.Status.FINISHED).exists()


def add_answer(row: Dialog, generation: Generation, answer: Answer, *, cut_short: bool) -> Message:
    return add_message(
        row,
        role=Role.ASSISTANT,
        origin=MessageOrigin.AGENT,
        content=answer.text,
        parent=generation.prompt_leaf,
        parts={"reasoning": answer.reasoning} if answer.reasoning else {},
        cut_short=cut_short,
    )


# The columns that are written at the end of a generation.
ENDED = (
    *("status", "message", "finished_at", "first_token_at", "finish_reason", "usage_raw"),
    *("partial_text", "partial_reasoning", "error_code", "error_message", "why", "retry_at"),
    *("prompt_tokens", "completion_tokens", "total_tokens", "cached_tokens", "manifest"),
)


def close(generation: Generation, status: str, answer: Answer, message: Message | None) -> None:
    generation.status = status
    generation.message = message
    generation.finished_at = timezone.now()
    generation.first_token_at = answer.first_token_at
    generation.finish_reason = answer.finish_reason[:60]
    generation.usage_raw = answer.usage_raw
    # The message has the text now; a try without a message keeps it here.
    generation.partial_text = "" if message else answer.text
    generation.partial_reasoning = "" if message else answer.reasoning
    if isinstance(answer.usage, Usage):
        generation.prompt_tokens = answer.usage.prompt_tokens
        generation.completion_tokens = answer.usage.completion_tokens
        generation.total_tokens = answer.usage.total_tokens
        generation.cached_tokens = answer.usage.cached_tokens
    update(generation, *ENDED)


def read_health(row: Dialog, generation: Generation, answer: Answer) -> None:
    llm = generation.llm or row.llm
    # If the server reports only a part of the prompt, its usage does not say how full the window is.
    usage = UsageUnavailable() if bounds_of(llm).reports_part else answer.usage
    generation.reading = reading = record_reading(
        generation_id=generation.pk,
        usage=usage,
        configured=configured(llm),
        window_source=llm.context_length_source,
    )
    # A client's conversation gets no prompts: there the level is only shown.
    if not row.is_client_driven:
        remediation.record_level(row, generation.course, _level_to_ask_at(row, reading))


def _level_to_ask_at(row: Dialog, reading: HealthReading) -> str:
    """The level that remediation uses. If compaction makes room and no ceiling is configured, the agent is not prompted
    before half the window is used: a large window is in caution long before room is short."""
    too_early = (
        reading.level == Level.CAUTION
        and not reading.optimal_configured
        and (reading.prompt_tokens or 0) <= (reading.context_window or 0) / 2
    )
    is_spared = may_be_guarded(row) and row.agent.when_full != WhenFull.REMIND
    return Level.HEALTHY if too_early and is_spared else reading.level
