"""The border: OpenAI-format messages become units, and units become messages again.

Nothing is lost on the way: a unit whose content no strategy changed is rendered as an equal copy of its message,
unknown fields included. The input is never mutated. Cost: about a millisecond for a hundred messages. The kind of a
text is judged by its first part and by whole lines; who wrote it, its text cannot say.

A caller marks a message with a key of ours: `"dominds": {"priority": 1, "pinned": true, "inserted": true,
"framed": true}`, and a tool's result with `"failed": true` or `false`. What compaction wrote carries
`"dominds": {"written": "summary"}` or `"placeholder"`, by which alone it is known again: a person may type any words.
The key stays in what `render` returns; `sendable` takes it off before a provider sees it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import repeat
from typing import Any, NamedTuple

from health.compaction.reading import text
from health.compaction.reading.pairing import Placed, paired
from health.compaction.reading.text import Looked, of_text
from health.compaction.terms import wire
from health.compaction.terms.ports import Counter, text_sizes
from health.compaction.terms.units import WRITTEN, Kind, Priority, Role, Unit
from health.compaction.terms.wire import MARKS, InvalidMessages

__all__ = ["IMAGE_TOKENS", "MARKS", "WRITTEN_AS", "InvalidMessages", "Orphans", "Parsed", "parse", "render", "sendable"]

IMAGE_TOKENS = 100
WRITTEN_AS = "written"

Media = Callable[[Mapping[str, Any]], int]


class Orphans(StrEnum):
    """What to do with results without their call, and calls without result.

    REPAIR labels such a result as a user's text and gives such a call a result that says there is none: every
    word stays. So compact before asking the model, not between a call and its results.
    """

    REPAIR = "repair"
    REFUSE = "refuse"


@dataclass(frozen=True, kw_only=True)
class Parsed:
    """Units, not yet counted, and by unit id the message each was read from (the caller's own, never to be changed)."""

    units: tuple[Unit, ...]
    originals: Mapping[str, Mapping[str, Any]]
    warnings: tuple[str, ...] = ()


def parse(
    messages: Sequence[Mapping[str, Any]],
    *,
    orphans: Orphans = Orphans.REPAIR,
    media_tokens: Media | None = None,
    counter: Counter | None = None,
    priority_areas: Iterable[str] = (),
) -> Parsed:
    """Units of a conversation, one for each message. Ids are the messages' own, else "m0", "m1" by position.

    `media_tokens` says what a message's images, sounds and files cost; without it each is IMAGE_TOKENS. With a
    `counter` the units come counted, which is cheaper than to count them later: each is made once. A message marked
    with one of `priority_areas` is of priority 1.
    Raises InvalidMessages for what is no message, and for unpaired calls and results when they are to be refused.
    """
    _check(messages)
    pairing = paired(zip(_ids(messages), messages, strict=True))
    if pairing.faults and orphans is Orphans.REFUSE:
        raise InvalidMessages(f"{_sentence(pairing.faults[0])} Remove it, or pass orphans=Orphans.REPAIR.")
    areas = frozenset(map(as_area, priority_areas))
    units = _units(pairing.placed, media_tokens or _flat, counter, areas)
    originals = {placed.id: placed.message for placed in pairing.placed}
    faults = (*pairing.faults, *_faults_of_marks(messages))
    return Parsed(units=units, originals=originals, warnings=tuple(map(_sentence, faults)))


def as_area(name: str) -> str:
    """Two names of one area are alike in this form."""
    return " ".join(name.split()).casefold()


def render(units: Iterable[Unit], originals: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The messages of these units. What compaction wrote comes from the user, whatever its role says."""
    return [_message(unit, originals.get(unit.id)) for unit in units]


def sendable(messages: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The messages without the key of ours, which strict providers refuse."""
    return [{key: value for key, value in message.items() if key != MARKS} for message in messages]


def _check(messages: Any) -> None:
    if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Sequence):
        raise InvalidMessages(f"messages must be a list of messages, not {type(messages).__name__}.")
    for position, message in enumerate(messages):
        fault = _fault(message)
        if fault:
            raise InvalidMessages(f"messages[{position}] {fault}")


def _fault(message: Any) -> str:
    """What is wrong with one message and what to do, or empty."""
    if not isinstance(message, wire.OBJECT):
        return f"is {type(message).__name__}, not a dict: pass model_dump() of an SDK's object."
    role = message.get("role")
    if not isinstance(role, str) or role not in wire.ROLES:
        said = "has no role" if role is None else f"has an unknown role {role!r}"
        return f"{said}: give it one of {', '.join(wire.ROLES)}."
    return _fault_of_content(message.get("content")) or _fault_of_calls(message)


def _fault_of_content(content: Any) -> str:
    if content is None or isinstance(content, str):
        return ""
    if not isinstance(content, list | tuple):
        return f"has content of type {type(content).__name__}: it must be a string, null or a list of parts."
    if not all(isinstance(part, str | Mapping) for part in content):
        return 'has a content part that is no dict: write it as {"type": "text", "text": …}.'
    return ""


def _fault_of_calls(message: Mapping[str, Any]) -> str:
    calls = message.get("tool_calls")
    if not calls:
        return ""
    if not isinstance(calls, list | tuple) or not all(_is_call(call) for call in calls):
        return 'has tool_calls that are no list of {"id", "type", "function": {"name", "arguments"}}: correct them.'
    return ""


def _is_call(call: Any) -> bool:
    return isinstance(call, wire.OBJECT) and isinstance(call.get("function") or call.get("custom") or {}, wire.OBJECT)


def _ids(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """The messages' own ids as far as they are unique, else their positions."""
    taken: set[str] = set()
    ids = []
    for position, message in enumerate(messages):
        own = message.get("id")
        name = own if isinstance(own, str) and own else f"m{position}"
        while name in taken:
            name = f"m{position}" if name == own else f"{name}'"
        taken.add(name)
        ids.append(name)
    return ids


def _flat(message: Mapping[str, Any]) -> int:
    return IMAGE_TOKENS * wire.media_count(message)


def _units(
    placed: Sequence[Placed], media_tokens: Media, counter: Counter | None, areas: frozenset[str]
) -> tuple[Unit, ...]:
    seen = [_seen(each.message) for each in placed]
    texts = [(one.content, one.attached) for one in seen]
    sizes: Iterable[int | None] = text_sizes(texts, counter) if counter else repeat(None)
    return tuple(
        one.unit(
            each, 0 if isinstance(each.message.get("content"), str | None) else media_tokens(each.message), size, areas
        )
        for each, one, size in zip(placed, seen, sizes, strict=False)
    )


class _Seen(NamedTuple):
    """What is counted of a message, and the units that were made of it, by all else that they depend on."""

    content: str
    attached: str
    units: Looked

    def unit(self, placed: Placed, images: int, tokens: int | None, areas: frozenset[str]) -> Unit:
        key = (placed.id, placed.round_id, placed.stray, images, tokens, areas)
        found = self.units.get(key)
        if found is None:
            found = self.units[key] = _unit(placed, self, images=images, tokens=tokens, areas=areas)
        return found


def _seen(message: Mapping[str, Any]) -> _Seen:
    """A message that was read before is known again by all that it holds, unless it holds parts, such as images."""
    key = _key(message)
    known = None if key is None else text.LOOKS.known(key)
    if known:
        content, attached = known[_Seen]
        return _Seen(content, attached, known)
    content, attached = wire.text_of(message), wire.attached_to(message)
    units: Looked = {} if key is None else text.LOOKS.new(key, len(content) + len(attached))
    units[_Seen] = content, attached
    return _Seen(content, attached, units)


def _key(message: Mapping[str, Any]) -> Hashable:
    """The same for equal messages of JSON, None for others."""
    if not isinstance(message.get("content"), str | None):
        return None
    key = _frozen(message)
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _frozen(value: Any) -> Hashable:
    """Hashable, if all in it is; 1 is not True."""
    if isinstance(value, str):
        return value
    if isinstance(value, wire.OBJECT):
        return "{", *[(key, inner if type(inner) is str else _frozen(inner)) for key, inner in value.items()]
    if isinstance(value, list | tuple):
        return "[", *map(_frozen, value)
    return type(value), value


def _unit(placed: Placed, seen: _Seen, *, images: int, tokens: int | None, areas: frozenset[str]) -> Unit:
    message = placed.message
    content, attached = seen.content, seen.attached
    role, marks = wire.role_of(message), _marks(message)
    return Unit(
        id=placed.id,
        role=role,
        content=content,
        kind=_written(marks, role) or kind_of(content, role),
        timestamp=wire.seconds_of(message),
        priority=_priority(marks, areas),
        pinned=marks.get("pinned") is True,
        inserted=marks.get("inserted") is True or placed.stray,
        framed=marks.get("framed") is True,
        spoken=marks.get("spoken") is True,
        round_id=placed.round_id,
        calls=wire.calls_of(message) if role is Role.ASSISTANT else (),
        answers=wire.answered_by(message) if role is Role.TOOL else None,
        failed=marks["failed"] if role is Role.TOOL and isinstance(marks.get("failed"), bool) else None,
        attached=attached,
        image_tokens=images,
        estimated_tokens=None if tokens is None else tokens + images,
    )


def _marks(message: Mapping[str, Any]) -> Mapping[str, Any]:
    marks = message.get(MARKS)
    return marks if marks and isinstance(marks, Mapping) else {}


def _priority(marks: Mapping[str, Any], areas: frozenset[str]) -> Priority | None:
    """As a number or as people write it: 1, "1", "P1". One of the areas makes it the first."""
    if not marks:
        return None
    area = marks.get("area")
    if isinstance(area, str) and as_area(area) in areas:
        return Priority.P1
    return _PRIORITIES.get(str(marks.get("priority")).upper())


_PRIORITIES = {**{str(one.value): one for one in Priority}, **{one.name: one for one in Priority}}
_SWITCHES = ("pinned", "inserted", "framed", "spoken", "failed")


def _faults_of_marks(messages: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Marks that say nothing: who wrote them believes that a message is protected."""
    for position, marks in enumerate(map(_marks, messages)):
        if not marks:
            continue
        if marks.get("priority") is not None and _priority(marks, frozenset()) is None:
            yield f"messages[{position}] has the priority {marks['priority']!r}: give it 1, 2 or 3"
        for name in _SWITCHES:
            if not isinstance(marks.get(name), bool | None):
                yield f"messages[{position}] has {name} {marks[name]!r}: give it true or false"


def _written(marks: Mapping[str, Any], role: Role) -> Kind | None:
    """What compaction wrote it as, if it did. It writes in the user's place only."""
    mark = marks.get(WRITTEN_AS)
    return Kind(mark) if role is Role.USER and isinstance(mark, str) and mark in WRITTEN else None


def _message(unit: Unit, original: Mapping[str, Any] | None) -> dict[str, Any]:
    if original is None:
        mark = {MARKS: {WRITTEN_AS: unit.kind.value}} if unit.kind in WRITTEN else {}
        return {"role": Role.USER.value, "content": unit.content, **mark}
    copy: dict[str, Any] = _copied(original)
    if unit.content != wire.text_of(original):
        copy["content"] = _with_text(copy.get("content"), unit.content)
    return copy


def _with_text(content: Any, text: str) -> Any:
    """The text in place of the first text part; the others go, images stay."""
    if content is None or isinstance(content, str):
        return text
    first = next((number for number, part in enumerate(content) if wire.is_text(part)), len(content))
    kept = [part for part in content[first:] if not wire.is_text(part)]
    return [*content[:first], *([{"type": "text", "text": text}] if text else []), *kept]


def _copied(value: Any) -> Any:
    """A deep copy of JSON values; anything else is shared, as nobody here changes it."""
    if isinstance(value, wire.OBJECT):
        return {key: _copied(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_copied(inner) for inner in value)
    return value


def _sentence(fault: str) -> str:
    return f"{fault[0].upper()}{fault[1:]}." if not fault.startswith("messages[") else f"{fault}."


_SAMPLE = 8_000
_MOSTLY = 0.5
_FEWEST_LOG_LINES = 3

_FENCED = re.compile(r"^(```|~~~)[^\n]*\n.*?^\1", re.MULTILINE | re.DOTALL)
_PLAN_LINE = re.compile(r"\s*(?:[-*]|\d+[.)])\s+\[[ xX~-]\]\s")
_PLAN_REF = re.compile(
    r"\s*+#*+\s*+(?:plan-ref-\d+|(?:the )?(?:plan|to-?do list|taskdoc)\b\s*+:?\s*+$|(?:计划|待办)[：:]?\s*+$)", re.I
)
_LOG_LINE = re.compile(
    r"\s*[\[(]?(?:\d{4}[-/]\d\d[-/]\d\d[ T]\d\d:|\d\d:\d\d:\d\d|[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:"
    r"|(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL|CRITICAL)\b)"
)
_CODE_LINE = re.compile(
    r"\s*(?:\d+[\t:|]\s*)?(?:def |class |import |from \S+ import |return\b|async |await |@\w|#include|package |func "
    r"|fn |let |const |var |public |private |static |if\b.*[:{]$|for\b.*[:{]$|while\b.*[:{]$|else\b|\}|//|/\*|\*/|#!)"
    r"|.*[;{}]\s*$"
)


@of_text
def kind_of(text: str, role: Role) -> Kind:
    """The kind of one message that somebody said: never one of `WRITTEN`."""
    sample = text[:_SAMPLE]
    if role in (Role.SYSTEM, Role.DEVELOPER) or not sample.strip():
        return Kind.MESSAGE
    lines = [line for line in sample.splitlines() if line.strip()]
    if _PLAN_REF.match(lines[0]) or ("[" in sample and _share(_PLAN_LINE, lines) >= _MOSTLY):
        return Kind.PLAN_REF
    if len(lines) >= _FEWEST_LOG_LINES and _share(_LOG_LINE, lines) >= _MOSTLY:
        return Kind.LOG
    if _is_code(sample, lines, role):
        return Kind.CODE
    return Kind.OTHER if role is Role.TOOL else Kind.MESSAGE


def _is_code(text: str, lines: list[str], role: Role) -> bool:
    """Mostly in fences; or, from a tool, which fences nothing, mostly lines that look like code."""
    fenced = _FENCED.finditer(text) if "```" in text or "~~~" in text else None
    if fenced and sum(len(block.group()) for block in fenced) >= _MOSTLY * len(text):
        return True
    return role is Role.TOOL and not text.lstrip().startswith(("{", "[")) and _share(_CODE_LINE, lines) >= _MOSTLY


def _share(pattern: re.Pattern[str], lines: list[str]) -> float:
    return sum(1 for line in lines if pattern.match(line)) / len(lines)
