"""Which words of a sentence say something, so that two sentences that share them may be about the same.

Chinese, which does not part its words, has pairs of characters for them.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence, Set
from operator import add
from typing import NamedTuple

from health.compaction.reading.text import STOPWORDS, of_text, remembered
from health.compaction.reading.value_patterns import (
    CHANGES,
    COMMON,
    SENTENCES,
    SHORTENED,
    WORDS,
    ZH_COMMON,
    ZH_GENERIC,
    raw_tokens,
    stem,
)

# Two things are not about the same since both are on a Friday, in euros, or nobody's.
NO_SUBJECT = frozenset(
    "mon tue tues wed thu thur thurs fri chf eur usd gbp nobody anybody anyone".split()  # noqa: SIM905
)
CJK_BEGINS = "\u2e80"
# Of each row one thing is chosen: who wants another of it no longer wants this one.
CHOICES = {
    "indentation": "tab tabs space spaces 制表符 空格",
    "package-manager": "npm pnpm yarn bun",
    "database": "postgres postgresql mysql sqlite mariadb mongodb",
    "test-runner": "pytest unittest jest vitest mocha",
    "units": "metric imperial celsius fahrenheit",
    "spelling": "british american",
    "language": (
        "english french german spanish italian portuguese chinese japanese korean russian 中文 英文 英语 法语 德语 日语"
    ),
}
CHOICE_OF = {word: name for name, row in CHOICES.items() for word in row.split()}
CHOICE = re.compile(
    rf"\b(?:{'|'.join(filter(str.isascii, CHOICE_OF))})\b"
    rf"|{'|'.join(word for word in CHOICE_OF if not word.isascii())}",
    re.I,
)
CHOOSING = re.compile(
    r"\b(?:us(?:e|ing)|reply|answer|respond|write|speak|talk|switch to|go(?:ing)? with|indent|prefer|stick (?:to|with)"
    r"|run)\b|用"
)
IN_LANGUAGE = re.compile(r"\b(?:in|speak|use|to) $|用$")
# Not chosen: "not tabs but", "instead of tabs", 不用制表符.
NOT_CHOSEN = re.compile(
    r"\b(?:instead of|rather than|no longer|not) [\w$€£: .-]{1,40}?(?= but\b|[,;.!]|$)|不(?:再|要)?[用是][^，,。]{1,15}"
)
REFUSED = re.compile(r"\b(?:never|not|don['’]t|avoid|stop)\b|不要|别|不再|禁止")


@of_text
def spelt_in(text: str) -> Sequence[str]:
    """The words and marks of a text in lower case."""
    return raw_tokens(text.lower())


@of_text
def forms_in(text: str) -> frozenset[str]:
    """Its words as they may stand among names, their stems too."""
    words = spelt_in(text)
    return frozenset(words).union([stem(word) for word in words if word[-1] == "s"])


class Choice(NamedTuple):
    """What is chosen of a row, or refused."""

    word: str
    row: str
    refused: bool


@of_text
def choice_of(text: str) -> Choice | None:
    """One of a few things that exclude each other: "use tabs", "reply in French"."""
    if text.isascii() and CHOICE_OF.keys().isdisjoint(spelt_in(text)):
        return None
    found = [*CHOICE.finditer(low := NOT_CHOSEN.sub("", text.lower()))]
    if len({hit[0] for hit in found}) != 1 or not CHOOSING.search(low):
        return None
    word, before = found[0][0], low[: found[0].start()]
    if CHOICE_OF[word] == "language" and not IN_LANGUAGE.search(before):
        return None
    return Choice(stem(word), CHOICE_OF[word], REFUSED.search(before) is not None)


def tokens_of(text: str) -> tuple[str, ...]:
    return stems_of(raw_tokens(text.lower()))


def stems_of(words: Iterable[str]) -> tuple[str, ...]:
    return tuple([stem(word) if word[-1] in "s'’" else word for word in words])


def content_of(tokens: Sequence[str]) -> Iterable[str]:
    """What says something: words, and pairs of Chinese."""
    return filter(is_word, tokens) if max(tokens, default="") < CJK_BEGINS else _with_pairs(tuple(tokens))


def frame_of(tokens: Sequence[str], values: Set[str]) -> frozenset[str]:
    """All plain words before a name at the end, as one: "write everything". Others may say the same of another."""
    *before, last = [token for token in tokens if token.isalpha() and token not in STOPWORDS] or [""]
    is_plain = last in values and len(before) > 1 and values.isdisjoint(before) and max(before) < CJK_BEGINS
    return frozenset([" ".join(before)] if is_plain else ())


@remembered(SENTENCES)
def _with_pairs(tokens: tuple[str, ...]) -> Sequence[str]:
    """Of the one before a value the first half may be a small word: 定投三百, not 级要40分."""
    found: list[str] = []
    for token, behind in itertools.pairwise((*tokens, "")):
        if token > CJK_BEGINS:
            found += filter(_is_telling_pair, map(add, token, token[1:]))
            if behind == "§" and len(token) > 1 and _is_half_telling(token[-2:]):
                found.append(token[-2:])
        elif is_word(token):
            found.append(token)
    return found


@remembered(WORDS)
def _is_telling_pair(pair: str) -> bool:
    return ZH_COMMON.isdisjoint(pair) and pair not in ZH_GENERIC


@remembered(WORDS)
def _is_half_telling(pair: str) -> bool:
    return pair[0] in ZH_COMMON and pair[1] not in ZH_COMMON and not CHANGES.search(pair)


@remembered(WORDS)
def is_word(token: str) -> bool:
    return (
        len(token) > 2
        and token[0].isalpha()
        and token not in COMMON
        and token not in NO_SUBJECT
        and not token.endswith(SHORTENED)
    )
