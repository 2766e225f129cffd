"""Dialogs that a client drives, stored as `/v1` stores them; nobody drives them here."""

from __future__ import annotations

from typing import Any

from dialogs.api.canonical import ClientRequest, answer_said, chained, following, split
from dialogs.api.writes.client_messages import remember
from dialogs.api.writes.client_turns import Target, direct_agent, take_up
from dialogs.models import LLM, Agent, ApiKey, Dialog, Message, PrefixNode
from tests.builders import an_answer

# One red pixel.
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
A_TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}


def ask(key: ApiKey, llm: LLM, *messages: dict[str, Any], agent: Agent | None = None, **more: Any) -> Dialog:
    """The dialog of a request with these messages, whose answer is due."""
    request = request_of(key, llm, *messages, agent=agent, **more)
    taken = take_up(key=key, target=Target(agent or direct_agent(llm), llm), request=request)
    return Dialog.objects.select_related("agent", "llm__provider", "current_leaf").get(pk=taken.claim.dialog_id)


def request_of(
    key: ApiKey, llm: LLM, *messages: dict[str, Any], agent: Agent | None = None, **more: Any
) -> ClientRequest:
    instructions, turns = split(messages)
    model = agent.slug if agent else llm.slug
    chain = tuple(chained(turns, root=f"{key.owner_id} {model}"))
    return ClientRequest(model=model, messages=chain, instructions=instructions, **more)


def answered(dialog: Dialog, content: str = "Hi.", **generation: Any) -> Message:
    """The due answer, known again when the client sends it back; the dialog is at rest afterwards."""
    message = an_answer(dialog, content, **generation)
    asked = PrefixNode.objects.get(message=message.parent)
    remember(dialog, message=message, prefix=following(asked.sha256, answer_said(content, ())))
    Dialog.objects.filter(pk=dialog.pk).update(lease_until=None)
    dialog.refresh_from_db()
    return message


def user(content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": content, **more}


def assistant(content: str | None, *calls: tuple[str, str], **more: Any) -> dict[str, Any]:
    """`calls` are pairs of an id and a name."""
    asked = [{"id": pk, "type": "function", "function": {"name": name, "arguments": "{}"}} for pk, name in calls]
    return {"role": "assistant", "content": content, **({"tool_calls": asked} if asked else {}), **more}


def result(call_id: str, content: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def image(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


def picture(media_type: str = "image/png", *, bytes_more: int = 0) -> dict[str, Any]:
    """An image as clients attach it; with more bytes it is large enough to be kept apart."""
    return image(f"data:{media_type};base64,{PNG}{'A' * (4 * ((bytes_more + 2) // 3))}")
