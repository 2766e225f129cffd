"""Claude Code's session logs: one JSON object a line, Anthropic's content blocks inside.

One answer of the model may be spread over several lines of one `message.id`, with results of its first calls in
between: it becomes one assistant message again, followed by its results.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from health.compaction.reading.messages import MARKS
from health.transcripts.transcript import Transcript, told

SPEAKERS = ("user", "assistant")


def session(entries: list[Any]) -> Transcript:
    """The main line of a session. Side chains, summaries and the program's own lines are left out, and said so."""
    lines = [entry for entry in entries if isinstance(entry, dict)]
    spoken = [line for line in lines if line.get("type") in SPEAKERS and isinstance(line.get("message"), dict)]
    main = [line for line in spoken if not line.get("isSidechain")]
    heard = [line for line in main if not line.get("isApiErrorMessage")]
    chat = _Chat()
    for line in heard:
        chat.add(line)
    summaries = sum(line.get("type") == "summary" for line in lines)
    notes = [
        *told(len(spoken) - len(main), "message{s} of side chains"),
        *told(summaries, "summary line{s}"),
        *told(len(main) - len(heard), "error message{s}"),
        *told(len(lines) - len(spoken) - summaries, "line{s} of the program's own"),
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
        # What the person says ends the answer: later lines of its id would be another one.
        self._answer_id = None
        mark = {MARKS: {"inserted": True}} if line.get("isMeta") or line.get("isCompactSummary") else {}
        self.messages.append({"role": "user", "content": _plain(parts), **_when(line), **mark})


def _blocks(content: Any) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content or () if isinstance(block, dict)]


def _extend(answer: dict[str, Any], block: dict[str, Any]) -> None:
    """One block more of an answer. Signatures of reasoning mean nothing to others, and are left out."""
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
    """A string where there is nothing but text."""
    if all(part["type"] == "text" for part in parts):
        return "\n\n".join(part["text"] for part in parts)
    return parts


def _when(line: dict[str, Any]) -> dict[str, Any]:
    return {"timestamp": line["timestamp"]} if line.get("timestamp") else {}
