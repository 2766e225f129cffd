"""Exports that keep every branch of a chat: OpenAI's conversations.json and Open WebUI's chats.

Only the branch that was shown last is read: from its newest message back to the root. Of several chats in one
file the one that was changed last is read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from health.transcripts.transcript import NotATranscript, Transcript, told


def openai(entries: list[Any]) -> Transcript:
    """OpenAI's export: `mapping` of nodes with parents, `current_node` the newest one shown."""
    chat, notes = _newest([entry for entry in entries if isinstance(entry, dict) and "mapping" in entry], "update_time")
    nodes = list(_branch(chat["mapping"], chat.get("current_node"), up="parent"))
    said = [node["message"] for node in nodes if isinstance(node.get("message"), dict)]
    shown = [message for message in said if not _is_hidden(message)]
    notes += told(len(said) - len(shown), "hidden message{s}") + _branches(chat["mapping"], len(nodes))
    messages: list[dict[str, Any]] = []
    for message in shown:
        messages.extend(_openai_message(message, messages))
    return Transcript(messages=messages, form="OpenAI export", notes=tuple(notes))


def open_webui(entries: list[Any]) -> Transcript:
    """Open WebUI's export: `chat.history.messages` by id with `parentId`, `currentId` the newest one shown."""
    outer, notes = _newest([entry for entry in entries if isinstance(entry, dict) and "chat" in entry], "updated_at")
    chat = outer["chat"] if isinstance(outer["chat"], dict) else {}
    history = chat.get("history") or {}
    if history.get("messages"):
        said = list(_branch(history["messages"], history.get("currentId"), up="parentId"))
        notes += _branches(history["messages"], len(said))
    else:
        said = [message for message in chat.get("messages") or () if isinstance(message, dict)]
    system = (chat.get("params") or {}).get("system") or chat.get("system")
    opening = [{"role": "system", "content": system}] if system else []
    return Transcript(
        messages=opening + [_webui_message(message) for message in said], form="Open WebUI export", notes=tuple(notes)
    )


def _newest(chats: list[dict[str, Any]], when: str) -> tuple[dict[str, Any], list[str]]:
    newest = max(chats, key=lambda chat: _number(chat.get(when)))
    title = f" (“{newest['title']}”)" if newest.get("title") else ""
    return newest, [f"Of {len(chats)} chats the one changed last{title} was read."] if len(chats) > 1 else []


def _branch(nodes: Any, newest: Any, *, up: str) -> Iterator[dict[str, Any]]:
    """The nodes from the root to the newest one; a chain that goes in circles ends where it would begin again."""
    if not isinstance(nodes, Mapping):
        raise NotATranscript("Its messages are not a tree of nodes.")
    found: dict[str, dict[str, Any]] = {}
    at = newest if newest in nodes else next(reversed(nodes), None)
    while isinstance(at, str) and at not in found and isinstance(nodes.get(at), dict):
        found[at] = nodes[at]
        at = nodes[at].get(up)
    return reversed(found.values())


def _branches(nodes: Mapping[str, Any], read: int) -> list[str]:
    return told(len(nodes) - read, "message{s} of another branch") if len(nodes) > read else []


def _is_hidden(message: dict[str, Any]) -> bool:
    """Not part of what the model and the person saw: without weight, marked so, or empty."""
    meta = message.get("metadata") or {}
    hidden = meta.get("is_visually_hidden_from_conversation") or message.get("weight") == 0
    return bool(hidden) or not _openai_content(message.get("content") or {})


def _openai_message(message: dict[str, Any], before: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    author, content = message.get("author") or {}, _openai_content(message.get("content") or {})
    said: dict[str, Any] = {"role": author.get("role"), "content": content}
    if message.get("create_time"):
        said["timestamp"] = message["create_time"]
    recipient = message.get("recipient") or "all"
    if _thoughts(message["content"]):
        said |= {"content": "", "reasoning_content": content}
    elif said["role"] == "assistant" and recipient != "all":
        asked = {"name": recipient, "arguments": content if isinstance(content, str) else json.dumps(content)}
        said |= {"content": None, "tool_calls": [{"id": str(message.get("id")), "type": "function", "function": asked}]}
    elif said["role"] == "tool":
        calls = before[-1].get("tool_calls") if before else None
        said["tool_call_id"] = calls[0]["id"] if calls else str(author.get("name"))
    yield said


def _openai_content(content: dict[str, Any]) -> Any:
    """A string, or parts where there are images."""
    if "parts" not in content:
        thoughts = [
            thought.get("content", "") for thought in content.get("thoughts") or () if isinstance(thought, dict)
        ]
        return content.get("text") or content.get("result") or "\n".join(thoughts)
    parts = [part for part in content["parts"] or () if part]
    if all(isinstance(part, str) for part in parts):
        return "\n".join(parts)
    return [_openai_part(part) for part in parts]


def _thoughts(content: dict[str, Any]) -> str:
    return "\n".join(thought.get("content", "") for thought in content.get("thoughts") or ())


def _openai_part(part: Any) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    if part.get("content_type") == "image_asset_pointer":
        return {"type": "image_url", "image_url": {"url": part.get("asset_pointer", "")}}
    return {"type": "text", "text": part.get("text") or json.dumps(part, ensure_ascii=False)}


def _webui_message(message: dict[str, Any]) -> dict[str, Any]:
    content = message.get("content")
    images = [file["url"] for file in message.get("files") or () if file.get("type") == "image" and file.get("url")]
    if images and isinstance(content, str):
        pictures = [{"type": "image_url", "image_url": {"url": url}} for url in images]
        content = [{"type": "text", "text": content}, *pictures]
    said = {"role": message.get("role"), "content": content}
    kept = {key: message[key] for key in ("timestamp", "tool_calls", "tool_call_id") if message.get(key)}
    return said | kept


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
