"""A client's request as a turn of its dialog: taken up where its history is known, claimed at once, and concluded.

The process that took it up drives it. If it dies, the turn is interrupted, and the client asks again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models import BigIntegerField, F, QuerySet, UUIDField
from django.utils import timezone

from dialogs.api.canonical import ClientMessage, ClientRequest, chained_below
from dialogs.api.reads.clients import (
    KnownPrefix,
    Outcome,
    as_it_is,
    is_past_compacting,
    longest_known,
    may_be_known,
    outcome_of,
)
from dialogs.api.reads.trimmed import Trimmed, as_sent
from dialogs.api.writes.client_messages import add_history, carry_marks, fork, keep_shortened, mark_frame, remember
from dialogs.api.writes.client_views import carry_view, keep_ledger
from dialogs.common.broadcast import changed_on_commit
from dialogs.llms.guard import active_guard
from dialogs.models import LLM, Agent, ApiKey, ClientConversation, Course, Dialog, Generation, Message
from dialogs.models.dialog import PausedBy
from dialogs.models.message import Role
from dialogs.transcript.writes.dialog_row import lock, newest_leaf, save
from dialogs.turns.reads.turns import dialog_to_drive
from dialogs.turns.writes import lease
from dialogs.turns.writes.lease import Claim
from dialogs.turns.writes.messages import title_from
from dominds.prepared import database, prepared, rows_of
from dominds.rows import insert, new


class CompactingElsewhere(Exception):
    """Another request with the same history is being compacted: wait for it, then take this one up again."""


@dataclass(frozen=True)
class Target:
    """The requested agent, and the LLM that answers for it."""

    agent: Agent
    llm: LLM


@dataclass(frozen=True)
class HistoryLookup:
    """The result of looking up a request's history before it is stored: its known prefix, and the stored messages that
    end there, if these were read."""

    known: KnownPrefix
    branch: tuple[Message, ...] | None = None


@dataclass(frozen=True)
class Intake:
    """A request that is stored: the right to drive its dialog, its newest message, and what a driver reads.

    `branch` are the messages of the course up to that one; None where they are to be read. `is_unchanged`: the
    dialog has not changed since the lookup, so what was computed for the request then holds. `is_new`: its dialog was
    created for it.
    `prefix` is the hash by which the request is known.
    """

    claim: Claim
    leaf: Message
    dialog: Dialog
    prefix: str
    branch: tuple[Message, ...] | None = None
    is_unchanged: bool = False
    is_new: bool = False


@transaction.atomic(savepoint=False)
def take_up(*, key: ApiKey, target: Target, request: ClientRequest, lookup: HistoryLookup | None = None) -> Intake:
    """Store the request's new messages and claim its dialog. `lookup` saves a second lookup, if the dialog
    has not changed since. Raises CompactingElsewhere; nothing is stored then."""
    _one_at_a_time(key.owner_id, request)
    if lookup and (unchanged := _unchanged(lookup.known)):
        known, before = lookup.known, lookup.branch
        row, course = _at_rest(unchanged, known.messages[0], known)
    else:
        known, before = longest_known(owner=key.owner, request=request), None
        row, course = _dialog(known, key.owner, target)
    if row._state.adding and known.trimmed:
        known = KnownPrefix(0, ())
    messages, end = request.messages[known.length :], request.messages[-1].prefix
    if known.trimmed:
        before = known.trimmed.branch or None
        keep_shortened(known.trimmed.shortened, before)
        messages = tuple(chained_below(messages, known.trimmed.below))
        end = messages[-1].prefix if messages else known.trimmed.below
    _note(row, key, request, known.trimmed)
    before = () if row.current_leaf is None else before
    added = add_history(row, messages, below=row.current_leaf, course=course)
    carry_marks(row, course, added)
    if known.frame and known.length:
        # Else a person may have brought it along into several conversations, and it is theirs in each.
        mark_frame(row, request.messages[: known.frame])
    if row.current_leaf is None:
        raise ValueError("A request without a message was let in.")
    if course.head_run_id and not carry_view(row, course) and not known.length:
        keep_ledger(row, course)
    row.wake_seq += 1
    row.answer_due, row.stop_requested = True, False
    row.paused_by, row.active_at, row.archived_at = PausedBy.NOBODY, timezone.now(), None
    row.title = _title(row, request, known)
    row.llm, row.agent = target.llm, target.agent
    claim, is_new = lease.take(row), row._state.adding
    if is_new:
        # What belongs to it is stored already: the database asks for the dialog when all of it is there.
        insert(row)
        changed_on_commit(row.pk)
    else:
        save(row, *CHANGED)
    branch = None if before is None or known.frame else (*before, *added)
    is_unchanged = lookup is not None and known == lookup.known and branch is not None
    return Intake(claim, row.current_leaf, row, end, branch, is_unchanged, is_new)


@transaction.atomic
def conclude(taken: Intake, *, prefix: Callable[[Intake, Outcome], str]) -> Outcome:
    """Release the dialog; the outcome. An answer can be recognised by its prefix from now on."""
    lease.release(taken.claim)
    outcome = outcome_of(taken.leaf)
    know_again(taken, outcome, prefix=prefix)
    return outcome


def know_again(taken: Intake, outcome: Outcome, *, prefix: Callable[[Intake, Outcome], str]) -> None:
    """Store an answer's prefix, by which the next request recognises it."""
    last = outcome.generation
    if last is not None and last.status in (Generation.Status.FINISHED, Generation.Status.STOPPED) and last.message:
        # What stands below an answer already (a refused call of ours) belongs to it.
        end = newest_leaf(last.message) if outcome.calls else last.message
        remember(taken.leaf.dialog, message=end, prefix=prefix(taken, outcome))


def _one_at_a_time(owner_id: int, request: ClientRequest) -> None:
    """Lock against other requests of the same conversation (the same name, or histories that begin alike), so that the
    second sees the first. SQLite has one writer at a time anyway."""
    if connection.vendor == "postgresql" and request.messages and may_be_known(request):
        conversation = request.dialog_id or request.chat or request.messages[0].prefix
        begins = hashlib.sha256(f"{owner_id} {conversation}".encode()).digest()[:8]
        rows_of(database(), "SELECT pg_advisory_xact_lock(%s)", [int.from_bytes(begins, signed=True)])


CHANGED = (
    *("wake_seq", "answer_due", "stop_requested", "paused_by", "active_at", "archived_at"),
    *("title", "llm", "agent", "current_leaf", "last_seq", *lease.LEASE),
)


def _unchanged(known: KnownPrefix) -> Dialog | None:
    """The dialog in which a history was found, locked, if it is at rest and nobody has changed it since. Where a client
    puts more in front of its conversations, other dialogs count too."""
    if not known.messages or known.frame:
        return None
    before = known.messages[0].dialog
    return before if _at_rest_as_it_was(before.pk, before.version) else None


@prepared(UUIDField(), BigIntegerField())
def _at_rest_as_it_was(dialog_id: Any, version: Any) -> QuerySet[Dialog, Any]:
    found = Dialog.objects.select_for_update().filter(pk=dialog_id, version=version, wake_seq__lte=F("handled_seq"))
    return found.order_by().values_list("pk")


def _at_rest(row: Dialog, message: Message, known: KnownPrefix) -> tuple[Dialog, Course]:
    """It goes on below this message, or begins anew."""
    row.current_leaf, row.client = message if known.length else None, message.dialog.client
    _let_go(message.course)
    return row, message.course


def _dialog(known: KnownPrefix, owner: User, target: Target) -> tuple[Dialog, Course]:
    """Where to go on: in the first dialog at rest, else in a copy of a busy one."""
    for message in known.messages:
        row = lock(message.dialog)
        if not (row.is_busy or row.trashed_at):
            return _at_rest(row, as_it_is(message, row), known)
    if not (known.messages and known.length):
        return _new(owner, target)
    busy = known.messages[0]
    if active_guard(dialog_to_drive(busy.dialog_id)) and not is_past_compacting(busy):
        raise CompactingElsewhere
    if known.trimmed:
        # What the client left out is no part of a second conversation.
        return _new(owner, target)
    return fork(busy, owner=owner)


def _new(owner: User, target: Target) -> tuple[Dialog, Course]:
    dialog = new(
        Dialog, owner=owner, agent=target.agent, llm=target.llm, active_at=timezone.now(), is_client_driven=True
    )
    dialog.client = new(ClientConversation, dialog=dialog)
    course = new(Course, dialog=dialog, number=1)
    insert(course)
    return dialog, course


def _let_go(course: Course) -> None:
    """End a hold after an undo, as a typed message does: the guard may compact again."""
    if course.guard_held:
        course.guard_held = False
        course.save(update_fields=["guard_held"])


def _note(row: Dialog, key: ApiKey, request: ClientRequest, trimmed: Trimmed | None) -> None:
    """Store the request's other fields; written only if they have changed."""
    before = row.client
    wanted = beside_messages(key, request) | {"chat": request.chat or before.chat} | as_sent(trimmed)
    is_new = before._state.adding
    if is_new or any(getattr(before, name) != value for name, value in wanted.items()):
        for name, value in wanted.items():
            setattr(before, name, value)
        if is_new:
            insert(before)
        else:
            before.save(update_fields=list(wanted))


def beside_messages(key: ApiKey, request: ClientRequest) -> dict[str, Any]:
    """The request's fields beside its messages, as columns."""
    names = {tool["function"]["name"] for tool in request.tools}
    return {
        "api_key_id": key.pk,
        "model": request.model,
        "instructions": request.instructions,
        "tools": list(request.tools),
        "options": dict(request.options),
        "max_output_tokens": request.max_output_tokens,
        "offers_recall": key.offers_recall and "recall" not in names,
    }


def _title(row: Dialog, request: ClientRequest, known: KnownPrefix) -> str:
    """From the first question. Before its frame was known, the title may have come from that."""
    if row.title and not known.frame:
        return row.title
    first, *_rest = [*_asked(request.messages), request.model]
    if row.title and row.title != first:
        return row.title
    # Before what is asked first the client may have put more of its own.
    said = _asked(request.messages[known.frame :])[0 if known.length or not known.frame else -1 :]
    return said[0] if said else request.model


def _asked(messages: Sequence[ClientMessage]) -> list[str]:
    return [title_from(one.text) for one in messages if one.role == Role.USER and one.text.strip()]


def direct_agent(llm: LLM) -> Agent:
    """The hidden agent, without instructions, that stands for an LLM in `/v1`."""
    slug = f"direct-{llm.pk}"
    found, _made = Agent.objects.get_or_create(
        slug=slug, defaults={"name": llm.slug[:120], "llm": llm, "is_direct": True, "enabled": False}
    )
    return found
