"""What a pruning agent answered, parsed as strictly as a stranger's word deserves (DL12).

Two forms: decisions by message id, `{"drop": [ids], "summaries": [{"ids": [ids], "text": "…"}], "summary": "…"}`,
and seed 2's `{"prunedConversation": [messages], "summary": "…", …}`, where a message that equals no original
becomes the summary of the originals that are missing at its place. Its token numbers are not even read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from health.compaction.reasons import Argument, Reason, Why
from health.compaction.units import Role, Unit

LONGEST_ANSWER = 2_000_000
_FENCE = re.compile(r"\s*```(?:json|JSON)?[ \t]*\n(.*?)\n?[ \t]*```\s*", re.DOTALL)


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
    summary: str = ""


def decision(answer: str, shown: Sequence[Unit]) -> Decision:
    """The agent's decision about the units that it was shown. Raises Rejected."""
    told = _parsed(answer)
    changes = tuple(_by_messages(told["prunedConversation"], shown) if "prunedConversation" in told else _by_ids(told))
    _check_ids(changes, {unit.id for unit in shown})
    summary = told.get("summary", "")
    return Decision(changes=changes, summary=summary if isinstance(summary, str) else "")


def _parsed(answer: str) -> dict[str, Any]:
    if not isinstance(answer, str) or len(answer) > LONGEST_ANSWER:
        raise Rejected(Why.NO_TEXT)
    fenced = _FENCE.fullmatch(answer)
    try:
        told = json.loads(fenced[1] if fenced else answer)
    except (ValueError, RecursionError):
        raise Rejected(Why.NO_JSON) from None
    if not isinstance(told, dict) or not told.keys() & {"drop", "summaries", "prunedConversation"}:
        raise Rejected(Why.NO_DECISIONS)
    return told


def _by_ids(told: Mapping[str, Any]) -> Iterator[Change]:
    for dropped in _strings(told.get("drop", []), "drop"):
        yield Change(ids=(dropped,))
    summaries = told.get("summaries", [])
    if not isinstance(summaries, list):
        raise Rejected(Why.NO_LIST, name="summaries")
    for one in summaries:
        if not isinstance(one, dict) or not isinstance(one.get("text"), str) or not one["text"].strip():
            raise Rejected(Why.SUMMARY_WITHOUT_TEXT)
        ids = tuple(_strings(one.get("ids"), "ids"))
        if not ids:
            raise Rejected(Why.SUMMARY_OF_NOTHING)
        yield Change(ids=ids, text=one["text"].strip())


def _strings(value: Any, name: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise Rejected(Why.NO_LIST_OF_IDS, name=name)
    return value


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
    if text:
        yield Change(ids=tuple(unit.id for unit in missing), text=text)
    else:
        yield from (Change(ids=(unit.id,)) for unit in missing)


def _check_ids(changes: Sequence[Change], known: set[str]) -> None:
    seen: set[str] = set()
    for named in (one for change in changes for one in change.ids):
        if named not in known:
            raise Rejected(Why.NOT_SHOWN, name=repr(named[:40]))
        if named in seen:
            raise Rejected(Why.DECIDES_TWICE, name=repr(named[:40]))
        seen.add(named)
