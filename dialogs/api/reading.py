"""From an HTTP request to a `ParsedRequest`: body, headers, target. What is wrong in them is raised as an ApiError."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest

from dialogs.api.auth import authenticate, require_chat, secret_in
from dialogs.api.background import is_background, is_summarising
from dialogs.api.canonical import (
    DIALOG_HEADER,
    INSTRUCTIONS,
    ClientMessage,
    ClientRequest,
    chained,
    chat_in,
    following_on,
    split,
)
from dialogs.api.errors import ApiError, invalid_request, too_large
from dialogs.api.model_list import target_of
from dialogs.api.reads.clients import is_clients_dialog, longest_known
from dialogs.api.schemas import MAX_MESSAGES, ChatBody, ChatMessage, checked, in_range, read_json
from dialogs.api.speculation import SpeculativeRequest, speculate
from dialogs.api.writes.client_turns import HistoryLookup, Target
from dialogs.common.bounded import BoundedCache
from dialogs.models import ApiKey

# A cached conversation is found by the hash of its first messages, so many.
FIRST = 3
# Bytes of a cache: in all, and for each message beside its text.
MOST_BYTES, EACH = 32 * 1024 * 1024, 2_000
RawMessages = Sequence[Mapping[str, Any]]
Derived = TypeVar("Derived")


class ConversationCache(Generic[Derived]):
    """For each conversation a value derived from each message, by the conversation's key; the oldest are dropped."""

    def __init__(self, most_bytes: int) -> None:
        self._known: BoundedCache[str, tuple[RawMessages, Sequence[Derived]]] = BoundedCache(most_bytes)

    def of(self, key: str, messages: RawMessages) -> Sequence[Derived]:
        """The derived values of the leading messages that equal the cached ones."""
        known = self._known.get(key)
        return known[1][: _in_common(known[0], messages)] if known else ()

    def keep(self, key: str, messages: RawMessages, made: Sequence[Derived], *, size: int) -> None:
        """`size` is that of the request, in bytes."""
        self._known.keep(key, (messages, made), size=size + EACH * len(messages))


class PrefixHashCache:
    """Caches messages with the hashes of their prefixes."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._memory: ConversationCache[ClientMessage] = ConversationCache(most_bytes)

    def chained(self, messages: RawMessages, *, root: str, size: int) -> tuple[ClientMessage, ...]:
        """As `canonical.chained`. `size` is that of the request, in bytes."""
        if len(messages) <= FIRST:
            return tuple(chained(messages, root=root))
        key = _key(messages[:FIRST], root)
        known = self._memory.of(key, messages)
        rest = following_on(messages[len(known) :], known[-1].prefix) if known else chained(messages, root=root)
        made = (*known, *rest)
        self._memory.keep(key, messages, made, size=size)
        return made


@dataclass(frozen=True)
class CheckedMessage:
    """A checked message, and the same as the client wrote it, without null fields."""

    checked: ChatMessage
    plain: Mapping[str, Any]


class BodyCache:
    """Reads bodies; each message is checked once, when it first comes."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._memory: ConversationCache[CheckedMessage] = ConversationCache(most_bytes)

    def read(self, raw: bytes, *, root: str) -> tuple[ChatBody, tuple[Mapping[str, Any], ...]]:
        """The body and its messages as they were written. `root` keeps apart what must never meet.

        Raises ApiError, 400, that names the first field that is wrong.
        """
        found = read_json(raw)
        sent = found.get("messages") if isinstance(found, dict) else None
        if not isinstance(sent, list):
            body = checked(in_range(found))
            return body, tuple(map(_plain, body.messages))
        begins = _instructions(sent)
        turns = sent[begins:]
        key = _key(turns[:FIRST], root)
        same = self._memory.of(key, turns)
        body = _checked(found, begins, [one.checked for one in same])
        made = (*same, *(CheckedMessage(one, _plain(one)) for one in body.messages[begins + len(same) :]))
        self._memory.keep(key, turns, made, size=len(raw))
        return body, (*map(_plain, body.messages[:begins]), *[one.plain for one in made])


def _checked(found: dict[str, Any], begins: int, same: list[ChatMessage]) -> ChatBody:
    """The checked body. Messages in `same`, which follow the first `begins`, are not checked again."""
    sent = found["messages"]
    first, last = sent[:begins], sent[begins + len(same) :]
    new = in_range({**found, "messages": [*first, *last]})
    if len(sent) <= MAX_MESSAGES:
        with suppress(ApiError):
            body = checked(new)
            body.messages = [*body.messages[:begins], *same, *body.messages[begins:]]
            return body
    # Check all, so that an error names the right index, and a body with no new message can be valid.
    return checked({**found, "messages": [*first, *same, *last]})


def _plain(message: ChatMessage) -> Mapping[str, Any]:
    return message.model_dump(exclude_none=True)


def _instructions(messages: Sequence[Any]) -> int:
    """How many of the first messages are instructions, which may change with each request. They are not checked yet."""
    roles = (one.get("role") if isinstance(one, dict) else None for one in messages)
    return next((at for at, role in enumerate(roles) if role not in tuple(INSTRUCTIONS)), len(messages))


def _key(first: Sequence[Any], root: str) -> str:
    return hashlib.sha256(json.dumps([root, first]).encode()).hexdigest()


def _in_common(before: RawMessages, now: RawMessages) -> int:
    """How many leading messages are equal."""
    shorter = min(len(before), len(now))
    if before[:shorter] == now[:shorter]:
        return shorter
    return next(at for at, (one, other) in enumerate(zip(before, now, strict=False)) if one != other)


# In the User-Agent of the AI SDK's OpenAI-compatible provider.
SHOW_THOUGHTS = ("ai-sdk/openai-compatible",)
NOTICES_HEADER = "x-dominds-notices"
CHECKED, RECENT = BodyCache(), PrefixHashCache()


@dataclass(frozen=True, kw_only=True)
class ParsedRequest:
    """A request that has been checked. `messages` are as the client wrote them."""

    key: ApiKey
    body: ChatBody
    messages: tuple[Mapping[str, Any], ...]
    target: Target
    request: ClientRequest
    # A client's background task: it is answered, and no dialog is stored.
    is_background: bool
    # A background task whose answer will replace the client's history.
    is_summarising: bool
    lookup: HistoryLookup | None
    speculative: SpeculativeRequest | None
    notices: str

    @property
    def wants_usage(self) -> bool:
        """Is usage wanted in a stream? A body that is not streamed always has it."""
        return bool(self.body.stream_options and self.body.stream_options.include_usage)


def raw_body(request: HttpRequest) -> bytes:
    """Raises ApiError, 413."""
    try:
        return request.body
    except RequestDataTooBig:
        raise too_large(settings.DATA_UPLOAD_MAX_MEMORY_SIZE) from None


def read(request: HttpRequest, raw: bytes) -> ParsedRequest:
    """Parse a request, in one task of a database thread. Raises ApiError."""
    key = authenticate(secret_in(request.headers))
    require_chat(key)
    body, messages = CHECKED.read(raw, root=str(key.owner_id))
    target = target_of(key, body.model)
    instructions, turns = split(messages)
    tools = tuple(tool.model_dump(exclude_none=True) for tool in body.tools or ())
    asked = ClientRequest(
        model=body.model,
        messages=RECENT.chained(turns, root=f"{key.owner_id} {body.model}", size=len(raw)),
        instructions=instructions,
        tools=tools,
        options=body.options(),
        max_output_tokens=body.max_output_tokens,
        chat=chat_in(request.headers),
        dialog_id=_dialog(request, key),
    )
    is_aside = is_background(request, body, messages)
    lookup, prepared = (None, None) if is_aside else _looked_up(key, target, asked)
    return ParsedRequest(
        key=key,
        body=body,
        messages=messages,
        target=target,
        notices=_notices(request, key),
        request=asked,
        is_background=is_aside,
        is_summarising=is_aside and is_summarising(request, body, messages),
        lookup=lookup,
        speculative=prepared,
    )


def _looked_up(key: ApiKey, target: Target, request: ClientRequest) -> tuple[HistoryLookup, SpeculativeRequest | None]:
    """The stored prefix of the history, and the speculative request, if one can be made."""
    known = longest_known(owner=key.owner, request=request)
    found = speculate(key=key, target=target, request=request, known=known)
    return HistoryLookup(known, found.branch if found else None), found


def _notices(request: HttpRequest, key: ApiKey) -> str:
    wanted = request.headers.get(NOTICES_HEADER, "").strip().lower()
    if wanted and wanted not in ApiKey.Notices.values:
        choices = ", ".join(ApiKey.Notices.values)
        raise invalid_request(f"X-Dominds-Notices must be one of {choices}.", param="X-Dominds-Notices")
    return wanted or (ApiKey.Notices.REASONING if _shows_thoughts(request, key) else key.notices)


def _shows_thoughts(request: HttpRequest, key: ApiKey) -> bool:
    """A client that shows them and passes over events, where its key says nothing else."""
    agent = request.headers.get("user-agent", "").lower()
    return key.notices == ApiKey.Notices.EVENT and any(name in agent for name in SHOW_THOUGHTS)


def _dialog(request: HttpRequest, key: ApiKey) -> str:
    wanted = request.headers.get(DIALOG_HEADER, "").strip()
    if wanted and not is_clients_dialog(key=key, dialog_id=wanted):
        raise invalid_request("X-Dominds-Dialog names no conversation of yours.", param="X-Dominds-Dialog")
    return wanted
