"""What a case of the development set is, and the transcript that a generator writes it into.

In templates «…» marks what will be needed later: the marks are taken out, the spans between them remembered.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

Message = dict[str, Any]
_MARKED = re.compile(r"«([^»]*)»")


@dataclass(frozen=True, slots=True)
class Part:
    """A verbatim span of the message at index `at`, or one of `also` that says the same elsewhere."""

    text: str
    at: int
    also: tuple[Part, ...] = ()

    @classmethod
    def from_value(cls, value: Message) -> Part:
        return cls(value["text"], value["at"], tuple(map(cls.from_value, value["also"])))


@dataclass(frozen=True, slots=True)
class Needed:
    """One thing that is needed later: all its parts together. `asked`: the case's task is about it.

    `about` is what a question would call it, where that is known.
    """

    parts: tuple[Part, ...]
    why: str
    asked: bool = False
    about: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """One conversation. `task` tells what comes next without the answers in it; `needed` is in order."""

    kind: str
    id: str
    messages: list[Message]
    task: str
    needed: tuple[Needed, ...]
    tools: list[Message] = field(default_factory=list)

    def as_json(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, line: str) -> Case:
        value = json.loads(line)
        value["needed"] = tuple(
            Needed(tuple(map(Part.from_value, item["parts"])), item["why"], item["asked"], item.get("about", ""))
            for item in value["needed"]
        )
        return cls(**value)


class Transcript:
    """Messages in OpenAI form as they are written, each giving back the parts marked in it."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.needed: list[Needed] = []
        self.chars = 0

    def say(self, role: str, text: str, **more: Any) -> tuple[Part, ...]:
        """Add a message; the «marked» spans of `text` come back as parts."""
        bare = _MARKED.sub(r"\1", text)
        self.messages.append({"role": role, "content": bare, **more})
        self.chars += len(bare)
        return tuple(Part(span, len(self.messages) - 1) for span in _MARKED.findall(text))

    def call(self, name: str, arguments: Message, text: str | None = None) -> str:
        """Add an assistant's message with one call; returns the call's id."""
        return self.calls([(name, arguments)], text)[0]

    def calls(self, wanted: Iterable[tuple[str, Message]], text: str | None = None) -> list[str]:
        """Add an assistant's message with calls side by side; returns their ids."""
        made = [
            {
                "id": f"call_{len(self.messages)}_{number}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)},
            }
            for number, (name, arguments) in enumerate(wanted)
        ]
        self.messages.append({"role": "assistant", "content": text, "tool_calls": made})
        self.chars += len(json.dumps(made)) + len(text or "")
        return [str(call["id"]) for call in made]

    def result(self, call_id: str, text: str) -> int:
        """Add a tool's answer; returns its index."""
        self.messages.append({"role": "tool", "tool_call_id": call_id, "content": text})
        self.chars += len(text)
        return len(self.messages) - 1

    def need(self, parts: Iterable[Part], why: str, *, asked: bool = False, about: str = "") -> None:
        """Remember that these parts are needed together. Each must stand in its message."""
        parts = tuple(parts)
        for part in parts:
            if not part.text or part.text not in text_of(self.messages[part.at]):
                raise ValueError(f"{part.text!r} does not stand in message {part.at}")
        self.needed.append(Needed(parts, why, asked, about))

    def case(self, kind: str, name: str, task: str, tools: list[Message] | None = None) -> Case:
        needed = tuple(sorted(self.needed, key=lambda item: [part.at for part in item.parts]))
        return Case(kind, name, self.messages, task, needed, tools or [])


def stated(said: tuple[Part, ...], record: Part) -> Part:
    """What a record shows, or the sentence that repeats it, where there is one."""
    return Part(said[0].text, said[0].at, (record,)) if said else record


def text_of(message: Message) -> str:
    """All that a model reads of a message: its content, and names and arguments of its calls."""
    content = message.get("content")
    if isinstance(content, list):
        content = "\n".join(part.get("text", "") for part in content)
    calls = [f"{call['function']['name']} {call['function']['arguments']}" for call in message.get("tool_calls") or ()]
    return "\n".join([content or "", *calls]).strip("\n")
