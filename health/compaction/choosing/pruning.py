"""What a pruning agent answered: found wherever it stands in the answer, and followed only as far as every check goes.

Models think aloud, say a word before and after, fence their JSON, number the ids, leave a comma at an end. None of it
changes what was decided, so none of it is a reason to refuse. What the decision says is checked as a stranger's word.

Two forms: decisions by message id, `{"drop": [ids], "summaries": [{"ids": [ids], "text": "…"}], "summary": "…"}`,
and `{"prunedConversation": [messages], "summary": "…", …}`, where a message that equals no original
becomes the summary of the originals that are missing at its place. Its token numbers are not even read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any

from health.compaction.terms.reasons import Argument, Reason, Why
from health.compaction.terms.units import Role, Unit

LONGEST_ANSWER = 2_000_000
_JSON = json.JSONDecoder()
DECISIVE = frozenset({"drop", "summaries", "prunedConversation"})
# A model that thinks aloud ends its thoughts with this; the beginning often stands in the prompt instead.
END_OF_THOUGHTS = ("</think>", "</thinking>", "</thought>")
# Where an object may begin; after so many that are none, none is looked for.
_OBJECT = re.compile(r'\{\s{0,99}"')
MOST_STARTS = 50
# Text in quotation marks, to be stepped over, or a comma that nothing follows.
_LAST_COMMA = re.compile(r'"(?:[^"\\]+|\\.)*+"?|,(?=\s{0,99}[\]}])', re.DOTALL)


class Rejected(Exception):
    """An answer that cannot be followed; `why` is for the step's note."""

    def __init__(self, because: Why, **args: Argument) -> None:
        self.why = Reason(because, args)
        super().__init__(str(self.why))


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """What becomes of these messages: `text` in their place, or nothing where it is empty."""

    ids: tuple[str, ...]
    text: str = ""


@dataclass(frozen=True, kw_only=True)
class Decision:
    changes: tuple[Change, ...]
    summary: str


def decision(answer: str, shown: Sequence[Unit]) -> Decision:
    """The agent's decision about the units that it was shown. Raises Rejected."""
    told = _parsed(answer)
    changes = tuple(_by_messages(told["prunedConversation"], shown) if "prunedConversation" in told else _by_ids(told))
    _check_ids(changes, {unit.id for unit in shown})
    summary = told.get("summary", "")
    return Decision(changes=changes, summary=summary if isinstance(summary, str) else "")


def _parsed(answer: str) -> dict[str, Any]:
    if len(answer) > LONGEST_ANSWER:
        raise Rejected(Why.NO_TEXT)
    said = _without_thoughts(answer)
    told = _last_decision(said)
    if told is None:
        raise Rejected(Why.NO_DECISIONS if _is_json(said) or _OBJECT.search(said) else Why.NO_JSON)
    return told


def _is_json(answer: str) -> bool:
    try:
        json.loads(answer)
    except (ValueError, RecursionError):
        return False
    return True


def _without_thoughts(answer: str) -> str:
    return answer[max(answer.rfind(end) + len(end) if end in answer else 0 for end in END_OF_THOUGHTS) :]


def _last_decision(answer: str) -> dict[str, Any] | None:
    """The last object that decides something: one before it is a draft, or the form that was asked for."""
    found, end = None, 0
    for begin in islice((match.start() for match in _OBJECT.finditer(answer)), MOST_STARTS):
        if begin < end:
            continue
        with suppress(ValueError, RecursionError):
            told, length = _object(answer[begin:])
            end = begin + length
            found = told if told.keys() & DECISIVE else found
    return found


def _object(text: str) -> tuple[Any, int]:
    """What the text begins with, and how long that is; without its last commas where it is no JSON otherwise."""
    try:
        return _JSON.raw_decode(text)
    except ValueError:
        return _JSON.raw_decode(_LAST_COMMA.sub(lambda match: "" if match[0] == "," else match[0], text))


def _by_ids(told: Mapping[str, Any]) -> Iterator[Change]:
    for dropped in _strings(_or_nothing(told, "drop"), "drop"):
        yield Change(ids=(dropped,))
    summaries = _or_nothing(told, "summaries")
    if not isinstance(summaries, list):
        raise Rejected(Why.NO_LIST, name="summaries")
    for one in summaries:
        if not isinstance(one, dict) or not isinstance(one.get("text"), str) or not one["text"].strip():
            raise Rejected(Why.SUMMARY_WITHOUT_TEXT)
        ids = tuple(_strings(one.get("ids"), "ids"))
        if not ids:
            raise Rejected(Why.SUMMARY_OF_NOTHING)
        yield Change(ids=ids, text=one["text"].strip())


def _or_nothing(told: Mapping[str, Any], name: str) -> Any:
    """Many models write null for a list that has nothing in it."""
    value = told.get(name)
    return [] if value is None else value


def _strings(value: Any, name: str) -> list[str]:
    """Ids are numbers where they come from a database, and many models write them so."""
    if not isinstance(value, list) or not all(
        isinstance(one, str | int) and not isinstance(one, bool) for one in value
    ):
        raise Rejected(Why.NO_LIST_OF_IDS, name=name)
    return [str(one) for one in value]


def _by_messages(messages: Any, shown: Sequence[Unit]) -> Iterator[Change]:
    """The difference between what was shown and what came back, in the order of what was shown."""
    if not isinstance(messages, list):
        raise Rejected(Why.NO_LIST, name="prunedConversation")
    at, texts = 0, list[str]()
    for message in messages:
        role, content = _spoken(message)
        found = next((place for place in range(at, len(shown)) if _same(shown[place], role, content)), None)
        if found is None:
            texts.append(content)
        else:
            yield from _between(shown[at:found], texts)
            at, texts = found + 1, []
    yield from _between(shown[at:], texts)


def _spoken(message: Any) -> tuple[str, str]:
    if not isinstance(message, dict) or message.get("role") not in {Role.USER, Role.ASSISTANT, Role.TOOL}:
        raise Rejected(Why.FROM_NOBODY)
    content = message.get("content")
    if not isinstance(content, str | None):
        raise Rejected(Why.CONTENT_NO_TEXT)
    return message["role"], content or ""


def _same(unit: Unit, role: str, content: str) -> bool:
    return unit.role == role and unit.content == content


def _between(missing: Sequence[Unit], texts: Sequence[str]) -> Iterator[Change]:
    text = "\n".join(texts).strip()
    if text and not missing:
        raise Rejected(Why.STANDS_FOR_NONE)
    yield Change(ids=tuple(unit.id for unit in missing), text=text)


def _check_ids(changes: Sequence[Change], known: set[str]) -> None:
    seen: set[str] = set()
    for named in (one for change in changes for one in change.ids):
        if named not in known:
            raise Rejected(Why.NOT_SHOWN, name=repr(named[:40]))
        if named in seen:
            raise Rejected(Why.DECIDES_TWICE, name=repr(named[:40]))
        seen.add(named)
