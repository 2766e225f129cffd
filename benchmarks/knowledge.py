"""How much of a recorded conversation a compacted one still knows.

`know` alone can be won by a list of names: user turns word for word, and the shares of verbatim and of whole sentences
are judged beside it. Of values that were changed counts whether the new one stands, and the old one no longer as valid.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from benchmarks.devsets.case import Message
from benchmarks.facts import grams, has, is_near, places, text_of, whole_share
from benchmarks.recordings import Moment
from health.tokens.messages import count_messages

# Counted, not averaged. Shares are of 1; None where a case has nothing to judge.
COUNTED = ("misled", "over limit", "broken pairs")
Figures = dict[str, float | None]
# Shorter messages count as kept only where they are a line of their own.
SHORT_TURN = 24
# A value and what it is said of stand within so many characters.
REACH = 160
# Words that mark a value as old: such a mention is not misleading.
_SAYS_OLD = re.compile(
    r"(?:\b(?:was|were|not|instead of|rather than|previously|formerly|no longer|superseded|replac\w+|old)\b"
    r"|原[来为]|不再|而不是|不是|作废)\W{0,3}(?:\w+\W+){0,2}$",
    re.IGNORECASE,
)


def steps(messages: Sequence[Message]) -> list[list[int]]:
    """A call with its results is one step, any other message too. The system prompt is none: it always stays."""
    found: list[list[int]] = []
    for at, message in enumerate(messages):
        if message["role"] == "tool" and found:
            found[-1].append(at)
        elif message["role"] != "system":
            found.append([at])
    return found


def judged(moment: Moment, result: Sequence[Message], *, limit: int) -> Figures:
    """The figures of one result. A result over the limit loses its oldest steps first, as on a server."""
    texts = list(_read_by_a_server(moment, result, limit))
    blob, said = "\n".join(texts), grams(texts)
    figures: Figures = {
        "future facts": _share([is_near(fact, was, blob) for fact, was in moment.future.items()]),
        "user facts": _share([has(fact, blob) for fact in moment.told]),
        "user turns": _share(_turns(moment.turns, texts)),
        "verbatim": len(said & moment.grams) / len(said) if said else None,
        "whole": whole_share(texts, moment.pieces),
        "over limit": count_messages(result, "") > limit,
        "broken pairs": broken_pairs(result),
    }
    if moment.probes:
        return figures | changes(moment.probes, texts)
    known = [share for name in ("future facts", "user facts") if (share := figures[name]) is not None]
    return figures | {"know": fmean(known or [0])}


def _read_by_a_server(moment: Moment, result: Sequence[Message], limit: int) -> Iterator[str]:
    groups, left = steps(result), set(range(len(result)))
    while groups and count_messages([result[at] for at in sorted(left)], "") > limit:
        left -= set(groups.pop(0))
    for at in sorted(left):
        if result[at] not in moment.system:
            yield text_of(result[at])


def _share(stands: Sequence[bool]) -> float | None:
    return sum(stands) / len(stands) if stands else None


def _turns(turns: Sequence[str], texts: Sequence[str]) -> list[bool]:
    lines = {line.strip() for text in texts for line in (text, *text.split("\n"))}
    return [turn in lines if len(turn) < SHORT_TURN else any(turn in text for text in texts) for turn in turns]


def changes(probes: Mapping[str, Any], texts: Sequence[str]) -> Figures:
    """For changed values: resolved if the new one is there and the old one is not, or is marked as old."""
    bare = [_without(text, probes["retold"]) for text in texts]
    found = [
        (all(stands(probe, texts) for probe in one["new"]), any(_is_valid(old, bare) for old in one["old"]))
        for one in probes["updates"]
    ]
    return {
        "know": fmean(stands(probe, texts) for probe in probes["must_stand"]),
        "resolved": _share([new and not old for new, old in found]),
        "misled": sum(old and not new for new, old in found),
    }


def _without(text: str, sentences: Sequence[str]) -> str:
    """Without corrections that name what they correct."""
    for sentence in sentences:
        text = text.replace(sentence, " ")
    return text


def stands(probe: Sequence[str], texts: Sequence[str]) -> bool:
    """The last string of the probe stands near all others, which are what it is said of."""
    *about, value = (part.lower() for part in probe)
    text = "\n".join(texts).lower()
    return any(
        all(has(one, text[max(0, at - REACH) : at + len(value) + REACH]) for one in about) for at in places(value, text)
    )


def _is_valid(value: str, texts: Sequence[str]) -> bool:
    low = value.lower()
    return any(not _SAYS_OLD.search(text[:at]) for text in map(str.lower, texts) for at in places(low, text))


def broken_pairs(messages: Sequence[Message]) -> int:
    """Calls without exactly one result right behind them, and results without a call."""
    broken = 0
    for first, *rest in steps(messages):
        asked = Counter(call["id"] for call in messages[first].get("tool_calls") or ())
        given = Counter(messages[at]["tool_call_id"] for at in (first, *rest) if messages[at]["role"] == "tool")
        broken += (asked - given).total() + (given - asked).total()
    return broken
