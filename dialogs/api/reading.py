"""From an HTTP request to a `ClientRequest`: body, headers, and who is asked. What is wrong becomes an ApiError."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest

from dialogs.api.auth import authenticate, require_chat, secret_in
from dialogs.api.background import is_background, is_summarising
from dialogs.api.canonical import split
from dialogs.api.errors import invalid_request, too_large
from dialogs.api.foresight import Foreseen, foreseen
from dialogs.api.model_list import target_of
from dialogs.api.recent import Recent
from dialogs.api.schemas import ChatBody, read_body
from dialogs.clients import ClientRequest
from dialogs.models import ApiKey
from dialogs.selectors.clients import is_clients_dialog
from dialogs.services.client_turns import Target

# In the User-Agent of the AI SDK's OpenAI-compatible provider.
SHOW_THOUGHTS = ("ai-sdk/openai-compatible",)
NOTICES_HEADER = "x-dominds-notices"
RECENT = Recent()
DIALOG_HEADER = "x-dominds-dialog"
CHAT_HEADERS = ("x-dominds-chat", "x-openwebui-chat-id")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A request that has been checked. `messages` are as the client wrote them."""

    key: ApiKey
    body: ChatBody
    messages: tuple[Mapping[str, Any], ...]
    target: Target
    request: ClientRequest
    # The client's own task: it makes no dialog.
    is_background: bool
    # One whose answer the client will put in place of its history.
    is_summarising: bool
    foreseen: Foreseen | None
    notices: str

    @property
    def wants_usage(self) -> bool:
        """In a stream. Elsewhere it is always there."""
        return bool(self.body.stream_options and self.body.stream_options.include_usage)


def raw_body(request: HttpRequest) -> bytes:
    """Raises ApiError, 413."""
    try:
        return request.body
    except RequestDataTooBig:
        raise too_large(settings.DATA_UPLOAD_MAX_MEMORY_SIZE) from None


def read(request: HttpRequest, raw: bytes) -> Asked:
    """One trip to the database. Raises ApiError."""
    key = authenticate(secret_in(request.headers))
    require_chat(key)
    body = read_body(raw)
    target = target_of(key, body.model)
    messages = tuple(one.model_dump(exclude_none=True) for one in body.messages)
    instructions, turns = split(messages)
    tools = tuple(tool.model_dump(exclude_none=True) for tool in body.tools or ())
    asked = ClientRequest(
        model=body.model,
        messages=RECENT.chained(turns, root=f"{key.owner_id} {body.model}", size=len(raw)),
        instructions=instructions,
        tools=tools,
        options=body.options(),
        max_output_tokens=body.max_output_tokens,
        chat=_chat(request),
        dialog_id=_dialog(request, key),
    )
    is_aside = is_background(request, body, messages)
    return Asked(
        key=key,
        body=body,
        messages=messages,
        target=target,
        notices=_notices(request, key),
        request=asked,
        is_background=is_aside,
        is_summarising=is_aside and is_summarising(request, body, messages),
        foreseen=None if is_aside else foreseen(key=key, target=target, request=asked),
    )


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


def _chat(request: HttpRequest) -> str:
    found = (request.headers.get(name, "").strip() for name in CHAT_HEADERS)
    # A template that the client did not fill in is no name.
    return next((chat[:200] for chat in found if chat and not chat.startswith("{{")), "")


def _dialog(request: HttpRequest, key: ApiKey) -> str:
    wanted = request.headers.get(DIALOG_HEADER, "").strip()
    if wanted and not is_clients_dialog(owner=key.owner, dialog_id=wanted):
        raise invalid_request("X-Dominds-Dialog names no conversation of yours.", param="X-Dominds-Dialog")
    return wanted
