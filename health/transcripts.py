"""Reads chats from files as messages in OpenAI's format: a JSON array, a request body, JSONL, and the exports of three
programs. `notes` say what was left out.

A file is JSON as a whole, or one JSON value a line; which program wrote it shows in its keys. Of an export that keeps
every branch (OpenAI's conversations.json, Open WebUI's chats) only the branch that was shown last is read: from its
newest message back to the root; of several chats in one file, the one that was changed last. In Claude Code's session
logs, one JSON object a line with Anthropic's content blocks, one answer of the model may be spread over several lines
of one `message.id`, with results of its first calls in between: it becomes one assistant message again, followed by its
results.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from health.compaction.reading.messages import MARKS

SPEAKERS = ("user", "assistant")


class NotATranscript(ValueError):
    """The file has no readable chat. The text says why, with the line if there is one."""


@dataclass(frozen=True, kw_only=True)
class Transcript:
    """A chat: its messages, its tool schemas, the form of the file, and notes about what was left out."""

    messages: list[dict[str, Any]]
    form: str
    tools: tuple[dict[str, Any], ...] = ()
    notes: tuple[str, ...] = ()


Reader = Callable[[list[Any]], Transcript]


def left_out_note(number: int, what: str) -> list[str]:
    """A note about what was left out, or none. `what` holds its plural as in "message{s} of another branch"."""
    return [f"{number} {what.format(s='s' * (number > 1))} left out."] if number else []


def read(data: bytes) -> Transcript:
    """The chat in a file. Raises NotATranscript if it is empty, broken, or not a chat."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise NotATranscript(f"It is not UTF-8 text (byte {error.start}).") from error
    if not text.strip():
        raise NotATranscript("It is empty.")
    transcript = _read_value(_values(text))
    if not transcript.messages:
        raise NotATranscript(f"It holds no messages ({transcript.form}).")
    return transcript


def _values(text: str) -> Any:
    """The JSON value of the file, or the list of its lines' values."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as whole:
        lines = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
        # If the first line is JSON by itself, it is JSONL; else the error of the whole file is reported.
        if len(lines) < 2 or not _is_json(lines[0][1]):
            raise NotATranscript(f"It is not JSON: line {whole.lineno}, {whole.msg.lower()}.") from whole
    except (ValueError, RecursionError) as error:
        raise NotATranscript("It is nested too deeply, or has a number of thousands of digits.") from error
    return [_line(number, line) for number, line in lines]


def _is_json(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _line(number: int, line: str) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise NotATranscript(f"Line {number} is not JSON; is the file cut off?") from error
    if not isinstance(value, dict):
        raise NotATranscript(f"Line {number} is {type(value).__name__}, not a JSON object.")
    return value


def _read_value(value: Any) -> Transcript:
    entries = value if isinstance(value, list) else [value]
    first = next((entry for entry in entries if isinstance(entry, dict)), None)
    if entries and first is None:
        raise NotATranscript("It is JSON, but holds no objects: a chat is a list of messages.")
    for belongs, reader in FORMS:
        if belongs(entries):
            return _read_by(reader, entries)
    # Messages are not checked here: a faulty one is reported later with its place.
    return Transcript(messages=entries, form="messages")


def _read_by(reader: Reader, entries: list[Any]) -> Transcript:
    """Reads an export. Other programs' formats are undocumented: an unexpected one raises NotATranscript."""
    try:
        return reader(entries)
    except (AttributeError, KeyError, TypeError, IndexError) as error:
        name = reader.__name__.replace("_", " ")
        raise NotATranscript(f"It looks like a chat ({name}), but is built in another way: {error!r}.") from error


def _request(entries: list[Any]) -> Transcript:
    """The body of a request, or one of several lines for fine-tuning, each of which is a chat."""
    body = entries[0]
    if not isinstance(body["messages"], list):
        raise NotATranscript('Its "messages" are not a list.')
    tools = body.get("tools")
    notes = (f"The first of {len(entries)} chats was read.",) if len(entries) > 1 else ()
    return Transcript(
        messages=body["messages"],
        form="a request",
        tools=tuple(tools) if isinstance(tools, list) else (),
        notes=notes,
    )


def openai(entries: list[Any]) -> Transcript:
    """OpenAI's export: `mapping` of nodes with parents, `current_node` the newest one shown."""
    chat, notes = _newest([entry for entry in entries if isinstance(entry, dict) and "mapping" in entry], "update_time")
    nodes = list(_branch(chat["mapping"], chat.get("current_node"), up="parent"))
    said = [node["message"] for node in nodes if isinstance(node.get("message"), dict)]
    shown = [message for message in said if not _is_hidden(message)]
    notes += left_out_note(len(said) - len(shown), "hidden message{s}") + _branches(chat["mapping"], len(nodes))
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
    """The nodes from the root to the newest one; a cyclic chain ends where it would repeat."""
    if not isinstance(nodes, Mapping):
        raise NotATranscript("Its messages are not a tree of nodes.")
    found: dict[str, dict[str, Any]] = {}
    at = newest if newest in nodes else next(reversed(nodes), None)
    while isinstance(at, str) and at not in found and isinstance(nodes.get(at), dict):
        found[at] = nodes[at]
        at = nodes[at].get(up)
    return reversed(found.values())


def _branches(nodes: Mapping[str, Any], read: int) -> list[str]:
    return left_out_note(len(nodes) - read, "message{s} of another branch") if len(nodes) > read else []


def _is_hidden(message: dict[str, Any]) -> bool:
    """Whether model and person did not see the message: it has no weight, is marked hidden, or is empty."""
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
    """A string, or a list of parts if there are images."""
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


def session(entries: list[Any]) -> Transcript:
    """The main line of a session. Side chains, summaries and the program's own lines are left out, with notes."""
    lines = [entry for entry in entries if isinstance(entry, dict)]
    spoken = [line for line in lines if line.get("type") in SPEAKERS and isinstance(line.get("message"), dict)]
    main = [line for line in spoken if not line.get("isSidechain")]
    heard = [line for line in main if not line.get("isApiErrorMessage")]
    chat = _Chat()
    for line in heard:
        chat.add(line)
    summaries = sum(line.get("type") == "summary" for line in lines)
    notes = [
        *left_out_note(len(spoken) - len(main), "message{s} of side chains"),
        *left_out_note(summaries, "summary line{s}"),
        *left_out_note(len(main) - len(heard), "error message{s}"),
        *left_out_note(len(lines) - len(spoken) - summaries, "line{s} of the program's own"),
    ]
    return Transcript(messages=chat.messages, form="Claude Code log", notes=tuple(notes))


@dataclass
class _Chat:
    messages: list[dict[str, Any]] = field(default_factory=list)
    _answer_id: str | None = None
    _answer: dict[str, Any] = field(default_factory=dict)

    def add(self, line: dict[str, Any]) -> None:
        message = line["message"]
        blocks = _blocks(message.get("content"))
        if line["type"] == "assistant":
            self._add_answer(message.get("id"), blocks, line)
        else:
            self._add_said(blocks, line)

    def _add_answer(self, answer_id: str | None, blocks: list[dict[str, Any]], line: dict[str, Any]) -> None:
        if answer_id is None or answer_id != self._answer_id:
            self._answer_id, self._answer = answer_id, {"role": "assistant", "content": "", **_when(line)}
            self.messages.append(self._answer)
        for block in blocks:
            _extend(self._answer, block)

    def _add_said(self, blocks: list[dict[str, Any]], line: dict[str, Any]) -> None:
        results = [block for block in blocks if block.get("type") == "tool_result"]
        self.messages.extend({**_result(block), **_when(line)} for block in results)
        parts = list(_parts(block for block in blocks if block.get("type") != "tool_result"))
        if not parts:
            return
        # A person's message ends the answer: later lines with its id are another answer.
        self._answer_id = None
        mark = {MARKS: {"inserted": True}} if line.get("isMeta") or line.get("isCompactSummary") else {}
        self.messages.append({"role": "user", "content": _plain(parts), **_when(line), **mark})


def _blocks(content: Any) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content or () if isinstance(block, dict)]


def _extend(answer: dict[str, Any], block: dict[str, Any]) -> None:
    """Add one block to an answer, without signatures of reasoning, which only its service can use."""
    kind = block.get("type")
    if kind == "text":
        answer["content"] = "\n\n".join(filter(None, (answer["content"], block.get("text"))))
    elif kind == "thinking":
        before = answer.get("reasoning_content")
        answer["reasoning_content"] = "\n\n".join(filter(None, (before, block.get("thinking"))))
    elif kind in ("tool_use", "server_tool_use"):
        asked = {"name": block.get("name", ""), "arguments": json.dumps(block.get("input"), ensure_ascii=False)}
        call = {"id": block.get("id", ""), "type": "function", "function": asked}
        answer.setdefault("tool_calls", []).append(call)


def _result(block: dict[str, Any]) -> dict[str, Any]:
    parts = list(_parts(_blocks(block.get("content"))))
    return {"role": "tool", "tool_call_id": block.get("tool_use_id", ""), "content": _plain(parts)}


def _parts(blocks: Any) -> Iterator[dict[str, Any]]:
    for block in blocks:
        if block.get("type") == "text":
            yield {"type": "text", "text": block.get("text", "")}
        elif block.get("type") == "image":
            source = block.get("source") or {}
            url = source.get("url") or f"data:{source.get('media_type')};base64,{source.get('data')}"
            yield {"type": "image_url", "image_url": {"url": url}}


def _plain(parts: list[dict[str, Any]]) -> Any:
    """A string if there is only text."""
    if all(part["type"] == "text" for part in parts):
        return "\n\n".join(part["text"] for part in parts)
    return parts


def _when(line: dict[str, Any]) -> dict[str, Any]:
    return {"timestamp": line["timestamp"]} if line.get("timestamp") else {}


def _any(*keys: str) -> Callable[[list[Any]], bool]:
    return lambda entries: any(isinstance(entry, dict) and all(key in entry for key in keys) for entry in entries)


def _is_request(entries: list[Any]) -> bool:
    return bool(entries) and isinstance(entries[0], dict) and "messages" in entries[0] and "role" not in entries[0]


# The test of each form, and its reader; the first match is used.
FORMS: tuple[tuple[Callable[[list[Any]], bool], Reader], ...] = (
    (_any("mapping"), openai),
    (_any("chat", "id"), open_webui),
    (_any("type", "sessionId"), session),
    (_any("type", "message", "uuid"), session),
    (_is_request, _request),
)
