"""Recorded conversations, read from a folder that is named, and the moments at which somebody would compact them.

The folder holds packed files of JSON lines (`*.jsonl.gz`), one conversation a line: id, source, licence, kind, messages
in OpenAI's form, and probes where it was written with corrections. Nothing of it is ever copied into the project.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from benchmarks.devsets.case import Message
from benchmarks.facts import Words, arguments, grams, has, identifiers, pieces, surroundings, text_of
from health.tokens.messages import count_messages

# Shares of a conversation's tokens, before an assistant's message. Less than LEAST_TOKENS is nothing to compact.
CUTS, LEAST_TOKENS, FEWEST_FACTS = (0.5, 0.7, 0.85), 1000, 3
# Of each sort in one case: a long transcript must not take all the time.
MOST_FACTS = 60
HALVES = ("tune", "test")


@dataclass(frozen=True, kw_only=True)
class Conversation:
    id: str
    source: str
    licence: str
    kind: str
    messages: Sequence[Message]
    probes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def half(self) -> str:
        """The half that a conversation belongs to: numbers are tuned on one half and judged on the other."""
        return HALVES[zlib.crc32(self.id.encode()) % 2]


@dataclass(frozen=True, kw_only=True)
class Moment:
    """The messages until then, and the facts in them that the rest of the recording uses (`future`, with their
    context).

    With a `question` the facts are those that it asks for.
    """

    id: str
    kind: str
    conversation: str
    messages: Sequence[Message]
    future: Mapping[str, Sequence[frozenset[str]]] = field(default_factory=dict)
    told: Sequence[str] = ()
    probes: Mapping[str, Any] = field(default_factory=dict)
    question: str = ""

    @cached_property
    def system(self) -> list[Message]:
        return [message for message in self.messages if message["role"] == "system"][:1]

    @cached_property
    def tokens(self) -> int:
        return count_messages(self.messages, "")

    @cached_property
    def fixed_tokens(self) -> int:
        return count_messages(self.system, "")

    @cached_property
    def sizes(self) -> list[int]:
        """What each message costs by itself."""
        nothing = count_messages([], "")
        return [count_messages([message], "") - nothing for message in self.messages]

    @cached_property
    def turns(self) -> list[str]:
        """What users typed, each message once."""
        return list(dict.fromkeys(text_of(message).strip() for message in self.messages if message["role"] == "user"))

    @cached_property
    def grams(self) -> set[Words]:
        return grams(self._said)

    @cached_property
    def pieces(self) -> frozenset[Words]:
        return frozenset(piece for text in self._said for piece in pieces(text))

    @property
    def _said(self) -> list[str]:
        return [text_of(message) for message in self.messages if message["role"] != "system"]

    def limit(self, ratio: float) -> int:
        """That share of what can be compacted, beside the system prompt."""
        return int(self.fixed_tokens + ratio * (self.tokens - self.fixed_tokens))


def read(folder: Path, *, kinds: Iterable[str] = (), half: str = "both") -> Iterator[Conversation]:
    files = sorted(folder.glob("*.jsonl.gz"))
    if not files:
        raise SystemExit(f"There is no *.jsonl.gz in {folder}.")
    wanted = frozenset(kinds)
    for file in files:
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            for line in lines:
                one = Conversation(**json.loads(line))
                if (not wanted or one.kind in wanted) and half in ("both", one.half):
                    yield one


def licences(conversations: Sequence[Conversation]) -> Iterator[str]:
    """Under which licence the conversations are, by their own records."""
    counted = Counter((one.kind, one.licence, one.source) for one in conversations)
    for (kind, licence, source), count in sorted(counted.items()):
        yield f"{kind}: {count} under {licence}, from {source}"


def moments(conversation: Conversation) -> Iterator[Moment]:
    """A conversation with probes is compacted whole; others are cut before assistant messages."""
    if conversation.probes:
        own = conversation.id
        said, probes = conversation.messages, conversation.probes
        yield Moment(id=own, kind=conversation.kind, conversation=own, messages=said, probes=probes)
        return
    for share, at in cuts(conversation.messages):
        past, rest = conversation.messages[:at], conversation.messages[at:]
        future, told = used(past, rest), stated(past, rest)
        if len(future) >= FEWEST_FACTS:
            body = _text(past, "user", "assistant", "tool")
            yield Moment(
                id=f"{conversation.id}@{share}",
                kind=conversation.kind,
                conversation=conversation.id,
                messages=past,
                future={fact: surroundings(fact, body) for fact in future},
                told=told,
            )


def cuts(messages: Sequence[Message]) -> Iterator[tuple[float, int]]:
    """Shares, and the places before assistant messages that they come to."""
    sizes = [count_messages(messages[:at], "") for at in range(len(messages) + 1)]
    found = {0}
    for share in CUTS:
        before = (
            at for at, one in enumerate(messages) if one["role"] == "assistant" and sizes[at] <= share * sizes[-1]
        )
        at = max(before, default=0)
        asked = any(message["role"] == "user" for message in messages[:at])
        if at not in found and asked and count_messages(messages[1:at], "") >= LEAST_TOKENS:
            found.add(at)
            yield share, at


def used(past: Sequence[Message], rest: Sequence[Message]) -> list[str]:
    """What the rest really uses of what was said: identifiers and arguments that do not stand in the system prompt."""
    system, body = _text(past, "system"), _text(past, "user", "assistant", "tool")
    late = (message for message in rest if message["role"] == "assistant")
    found = (fact for one in late for fact in identifiers(one.get("content") or "") + arguments(one) if len(fact) > 2)
    return _spread(fact for fact in found if has(fact, body) and not has(fact, system))


def stated(past: Sequence[Message], rest: Sequence[Message]) -> list[str]:
    """What users said: identifiers, and what calls took from their words."""
    system, said = _text(past, "system"), _text(past, "user")
    called = [value for one in (*past, *_late(rest)) for value in arguments(one) if value[0].isalpha()]
    taken = [found.group() for one in called if (found := re.search(rf"\b{re.escape(one)}\b", said, re.IGNORECASE))]
    return _spread(fact for fact in identifiers(said) + taken if not has(fact, system))


def _late(rest: Sequence[Message]) -> list[Message]:
    return [message for message in rest if message["role"] == "assistant"]


def _text(messages: Sequence[Message], *roles: str) -> str:
    return "\n".join(text_of(message) for message in messages if message["role"] in roles)


def _spread(facts: Iterable[str]) -> list[str]:
    """No more than are judged, the same ones each time."""
    return sorted(set(facts), key=lambda fact: zlib.crc32(fact.encode()))[:MOST_FACTS]
