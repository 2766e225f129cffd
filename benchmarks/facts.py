"""Facts of a conversation (identifiers, numbers, values of calls), and whether a text still contains them.

A fact counts only as a whole word, and only among some of the words that stood around it before.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from benchmarks.devsets.case import Message

# Characters on each side of a fact that make its context.
NEAR = 80
# At least this share of the words around a fact must still be there: a bare list of names is worth nothing.
FEWEST_NEAR = 3
SHORTEST, LONGEST = 2, 120
MOST_PLACES = 40
FUNCTION_WORDS = frozenset(
    re.findall(
        r"\w+",
        """a about all also am an and any are as at be been being but by can could did do does for from get had has have
        he her here his how i if in into is it its just let like me my no not now of on one or our out she should so
        some than that the their them then there they this to up us was we were what when which who will with would you
        your""",
    )
)
# The first shape that fits counts.
SHAPES = (
    r"""https?://[^\s"'<>)\]]+""",  # addresses
    r"[\w.+-]+@[\w-]+\.[\w.]+",
    r"(?:[~.]{0,2}/)?(?:[\w.@+-]+/)+[\w.@+-]*\w",  # paths and files
    r"\b[\w-]+\.(?:py|js|tsx?|jsonl?|md|txt|c|h|cpp|java|go|rs|toml|ya?ml|cfg|ini|sh|html|css|xml|log|zip|scm)\b",
    r"--[a-z][\w-]+",  # names in code
    r"\b[A-Za-z]\w*_\w+\b",
    r"\b[A-Z]?[a-z0-9]+(?:[A-Z][a-z0-9]+)+\b",
    r"\b[A-Z][A-Z0-9]{2,}\b",
    r"\$\d[\d,.]*\d",  # amounts, dates, times, codes, numbers
    r"\b\d{4}-\d\d-\d\d\b",
    r"\b\d+(?:[.:,]\d+)+\b",
    r"\b(?=\w*\d)(?=\w*[A-Za-z])\w{4,}\b",
    r"\b\d{2,}\b",
)
_IDENTIFIER = re.compile("|".join(SHAPES))
_WORD = re.compile(r"[a-z0-9]+|[\u4e00-\u9fff]")
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s*")
_FLAT_OBJECT = re.compile(r"\{[^{}]*\}")

Words = tuple[str, ...]


def text_of(message: Message) -> str:
    """What a model reads of a message: its content, then names and arguments of its calls."""
    content = message.get("content") or ""
    if not isinstance(content, str):
        content = "\n".join(part.get("text", "") for part in content)
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    return content + "".join(f"\n{call['name']} {call.get('arguments') or ''}" for call in calls)


def words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def identifiers(text: str) -> list[str]:
    found = dict.fromkeys(match.group().rstrip(".,:;") for match in _IDENTIFIER.finditer(text))
    return [one for one in found if SHORTEST <= len(one) <= LONGEST]


def arguments(message: Message) -> list[str]:
    """Values of a message's calls: short ones whole, and the identifiers in all of them."""
    found: list[str] = []
    given: list[Any] = [call["function"].get("arguments") or "{}" for call in message.get("tool_calls") or ()]
    stack = _read(given)
    while stack:
        value = stack.pop()
        if isinstance(value, dict | list):
            stack += value.values() if isinstance(value, dict) else value
        elif not isinstance(value, bool | None):
            found += _values(str(value).strip())
    return found


def _read(given: list[Any]) -> list[Any]:
    try:
        return [json.loads(one) for one in given]
    except ValueError:
        return given


def _values(text: str) -> list[str]:
    if len(text) <= SHORTEST:
        return []
    return [text] * (len(text) <= 60 and "\n" not in text) + identifiers(text)


def places(needle: str, hay: str) -> Iterator[int]:
    """Where the fact occurs as a whole word; in Chinese anywhere."""
    at = hay.find(needle)
    while at >= 0:
        behind = at + len(needle)
        is_part = (at > 0 and _joins(hay[at - 1], needle[0])) or (behind < len(hay) and _joins(needle[-1], hay[behind]))
        if not is_part:
            yield at
        at = hay.find(needle, at + 1)


def _joins(one: str, other: str) -> bool:
    return one.isascii() and other.isascii() and one.isalnum() and other.isalnum()


def has(needle: str, hay: str) -> bool:
    return next(places(needle, hay), None) is not None


def surroundings(needle: str, text: str) -> list[frozenset[str]]:
    """The words that say something around each place of a fact."""
    own, found = frozenset(words(needle)), list[frozenset[str]]()
    for number, at in enumerate(places(needle, text)):
        if number == MOST_PLACES:
            break
        behind = at + len(needle)
        around = words(f"{text[max(0, at - NEAR) : at]} {text[behind : behind + NEAR]}")
        found.append(frozenset(word for word in around if len(word) > 1 and word not in FUNCTION_WORDS) - own)
    return found


def is_near(fact: str, was: Iterable[frozenset[str]], text: str) -> bool:
    """Does it stand among enough of the words that it once stood among?"""
    now = surroundings(fact, text)
    return any(len(old & new) >= min(FEWEST_NEAR, len(old)) for old in was for new in now)


def grams(texts: Iterable[str]) -> set[Words]:
    """Runs of four words."""
    said = map(words, texts)
    return {tuple(each[at : at + 4]) for each in said for at in range(len(each) - 3)}


def pieces(text: str) -> list[Words]:
    """Sentences, lines and flat JSON objects, as words: a row of `key=value` counts as its object."""
    parts = [part for line in text.split("\n") for part in _SENTENCE_END.split(line)]
    return [found for part in [*parts, *_FLAT_OBJECT.findall(text)] if (found := tuple(words(part)))]


def whole_share(texts: Sequence[str], known: frozenset[Words]) -> float:
    """The share of the words that stand in whole lines, sentences or objects of the original."""
    kept = [piece for text in texts for line in text.split("\n") for piece in _pieces_of_line(line, known)]
    return sum(len(piece) for piece in kept if piece in known) / (sum(map(len, kept)) or 1)


def _pieces_of_line(line: str, known: frozenset[Words]) -> list[Words]:
    told = tuple(words(line))
    if not told:
        return []
    return [told] if told in known else pieces(line)
