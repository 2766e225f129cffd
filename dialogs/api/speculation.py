"""Speculative requests: the request that the driver will make for a client, built before anything of it is stored.

Only where the driver will surely send it as it is: the request is far below its limit, and there is no queue for the
provider, no window to read, no image to store as a blob, no view and no check for loops. Else there is none, and the
driver builds the request later.

The context of each conversation's newest request is cached, and the next request extends it. The cache is valid only
while the dialog has the version with which this process stored the answer, and ends with that answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from dialogs.api.canonical import ClientMessage, ClientRequest
from dialogs.api.reads.clients import KnownPrefix
from dialogs.api.writes.client_messages import calls_of, row_of
from dialogs.api.writes.client_turns import Target, beside_messages
from dialogs.common.bounded import BoundedCache
from dialogs.context.beginning import Beginning, standing_now
from dialogs.context.border import Context, chat_request
from dialogs.context.estimate import Sizing, extended, offered_tools, said_bytes
from dialogs.driver.guarding import PreparedRequest, is_sent_as_it_is
from dialogs.llms.guard import guard_of
from dialogs.llms.reads import settings_for
from dialogs.llms.windows import must_be_asked
from dialogs.models import ApiKey, ClientConversation, Course, Dialog, Message, ToolCall
from dialogs.models.message import MessageOrigin, Role
from dialogs.providers.base import ChatRequest, ProviderSettings
from dialogs.transcript.reads.path import course_branch
from dialogs.transcript.reads.tool_calls import calls_by_message
from dominds.rows import copied, new
from health.loops import EVERY_CALLS


@dataclass(frozen=True)
class SpeculativeRequest:
    """A speculative request, the stored messages that it continues, and the estimate and guard that go with it."""

    request: ChatRequest
    settings: ProviderSettings
    branch: tuple[Message, ...]
    prepared: PreparedRequest


@dataclass(frozen=True)
class AppendPoint:
    """Where a request's new messages go: after the stored `branch`. `before`: the last request made of that branch."""

    dialog: Dialog
    course: Course
    branch: tuple[Message, ...] = ()
    before: AnsweredRequest | None = None

    @property
    def number(self) -> int | None:
        """The number of the generation that will answer; None where it must be read."""
        if self.before:
            return self.before.number + 1
        return None if self.branch else 1


def speculate(*, key: ApiKey, target: Target, request: ClientRequest, known: KnownPrefix) -> SpeculativeRequest | None:
    """Reads the database; `known` is the stored prefix. None where the driver may have to act first."""
    if _is_looked_at_first(target, request):
        return None
    place = _place_of(known, request) if known.messages else _new_place()
    if place is None:
        return None
    dialog = place.dialog
    dialog.agent, dialog.llm = target.agent, target.llm
    dialog.client = new(ClientConversation, dialog=dialog, **beside_messages(key, request))
    context, tools = _context(place, request.messages[known.length :]), offered_tools(dialog)
    guard, sizing = guard_of(dialog), Sizing(context, tools)
    if not is_sent_as_it_is(sizing, guard):
        return None
    asked, settings = chat_request(context, tools=tools), settings_for(target.llm.provider)
    return SpeculativeRequest(
        asked, settings, place.branch, PreparedRequest(guard, sizing, asked, settings, place.number)
    )


def _is_looked_at_first(target: Target, request: ClientRequest) -> bool:
    return (
        target.llm.provider.max_concurrent is not None
        or must_be_asked(target.llm)
        or any(message.wire for message in request.messages)
    )


def _new_place() -> AppendPoint:
    dialog = new(Dialog, is_client_driven=True)
    return AppendPoint(dialog, new(Course, dialog=dialog, number=1))


def _place_of(known: KnownPrefix, request: ClientRequest) -> AppendPoint | None:
    last = known.messages[0]
    is_same_again, is_replaced = known.length == len(request.messages), not known.length
    if is_same_again or is_replaced or known.trimmed or last.dialog.is_busy:
        return None
    if last.course.head_run_id or last.dialog.unchecked_calls >= EVERY_CALLS:
        return None
    # A copy: the dialog as it was read is needed later, to store the request.
    before = RECENT.below(last)
    return AppendPoint(copied(last.dialog), last.course, before.branch if before else course_branch(last), before)


def _context(place: AppendPoint, new: Sequence[ClientMessage]) -> Context:
    """As it will be once it is stored, but for the ids."""
    calls = _calls(place)
    rows: list[Message] = []
    for number, said in enumerate(new, start=1):
        row = row_of(place.dialog, place.course, said, None, {})
        row.pk = -number
        rows.append(row)
        if said.calls and row.role == Role.ASSISTANT:
            calls[row.pk] = calls_of(row, said)
    branch, client = (*place.branch, *rows), place.dialog.client
    beginning = Beginning(first=standing_now(place.dialog))
    found = Context(dialog=place.dialog, branch=branch, calls=calls, beginning=beginning, client=client)
    return extended(place.before.context, found) if place.before else found


def _calls(place: AppendPoint) -> dict[int, tuple[ToolCall, ...]]:
    if place.before and not place.before.has_any_calls:
        return {}
    return calls_by_message([message.id for message in place.branch if message.role == Role.ASSISTANT])


# Bytes of the cache: of all texts, beside each message's text, and beside each conversation.
MOST_BYTES, EACH, BESIDE = 32 * 1024 * 1024, 2_000, 20_000
PLAIN = {MessageOrigin.CLIENT, MessageOrigin.TOOL, MessageOrigin.AGENT}


@dataclass(frozen=True)
class AnsweredRequest:
    """A request as it was made, and the answer to it: the course's generation with this number."""

    context: Context
    answer: Message
    version: int
    number: int
    has_calls: bool

    @property
    def branch(self) -> tuple[Message, ...]:
        return (*self.context.branch, self.answer)

    @property
    def has_any_calls(self) -> bool:
        return self.has_calls or bool(self.context.calls)


class AnsweredCache:
    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._known: BoundedCache[UUID, AnsweredRequest] = BoundedCache(most_bytes)

    def below(self, leaf: Message) -> AnsweredRequest | None:
        """The kept request and answer that end with this message, read with its dialog just now; else None."""
        known = self._known.get(leaf.dialog_id)
        is_as_left = known is not None and (known.answer.pk, known.version) == (leaf.pk, leaf.dialog.version)
        return known if is_as_left else None

    def keep(self, context: Context, answer: Message, *, number: int, has_calls: bool) -> None:
        """Keep a context and its answer, where every message of the branch is sent as it stands."""
        if _is_whole(context, answer, has_calls=has_calls):
            size = said_bytes(context) + EACH * len(context.branch) + BESIDE
            before = self._known.get(answer.dialog_id)
            _let_go(context.branch[len(before.context.branch) if before else 0 :])
            found = AnsweredRequest(context, answer, answer.dialog.version, number, has_calls)
            self._known.keep(answer.dialog_id, found, size=size)


def _let_go(messages: Iterable[Message]) -> None:
    """Drop the references of these messages to dialog, course and parent: each turn reads its own rows."""
    for message in messages:
        message._state.fields_cache.clear()


def _is_whole(context: Context, answer: Message, *, has_calls: bool) -> bool:
    is_next = context.branch[-1].pk == answer.parent_id and answer.dialog.current_leaf_id == answer.pk
    is_plain = context.view is None and len(context.pieces) == len(context.branch)
    # An empty answer is part of the history only if the client goes on after it.
    says_something = bool(answer.content or has_calls)
    return is_next and is_plain and says_something and {one.origin for one in context.branch} <= PLAIN


RECENT = AnsweredCache()
