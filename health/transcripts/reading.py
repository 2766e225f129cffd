"""Tells the forms of chat files apart: a JSON array, a request body, JSONL, and three programs' exports.

A file is JSON as a whole, or one JSON value a line; which program wrote it shows in its keys.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from health.transcripts import claude_code, trees
from health.transcripts.transcript import NotATranscript, Transcript

Reader = Callable[[list[Any]], Transcript]

__all__ = ["NotATranscript", "Transcript", "read"]


def read(data: bytes) -> Transcript:
    """The chat in a file. Raises NotATranscript for what is empty, broken, or no chat."""
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
    except RecursionError as error:
        raise NotATranscript("It is nested too deeply.") from error
    except json.JSONDecodeError as whole:
        lines = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
        # A first line that is JSON by itself makes it JSONL; else the error of the whole is the one to tell.
        if len(lines) < 2 or not _is_json(lines[0][1]):
            raise NotATranscript(f"It is not JSON: line {whole.lineno}, {whole.msg.lower()}.") from whole
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
    # Messages of any quality: what is wrong with one of them is told with its place later on.
    return Transcript(messages=entries, form="messages")


def _read_by(reader: Reader, entries: list[Any]) -> Transcript:
    """Exports come from other programs, in versions that nobody documents: a surprise is an answer, not a crash."""
    try:
        return reader(entries)
    except (AttributeError, KeyError, TypeError, IndexError) as error:
        name = reader.__name__.replace("_", " ")
        raise NotATranscript(f"It looks like a chat ({name}), but is built in another way: {error!r}.") from error


def _request(entries: list[Any]) -> Transcript:
    """The body of a request, or one of several lines for fine-tuning, which are chats of their own."""
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


def _any(*keys: str) -> Callable[[list[Any]], bool]:
    return lambda entries: any(isinstance(entry, dict) and all(key in entry for key in keys) for entry in entries)


def _is_request(entries: list[Any]) -> bool:
    return bool(entries) and isinstance(entries[0], dict) and "messages" in entries[0] and "role" not in entries[0]


FORMS: tuple[tuple[Callable[[list[Any]], bool], Reader], ...] = (
    (_any("mapping"), trees.openai),
    (_any("chat", "id"), trees.open_webui),
    (_any("type", "sessionId"), claude_code.session),
    (_any("type", "message", "uuid"), claude_code.session),
    (_is_request, _request),
)
