"""Which words of a sentence say something, so that two sentences that share them may be about the same.

Chinese, which does not part its words, has pairs of characters for them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from health.compaction.reading.text import remembered
from health.compaction.reading.value_patterns import (
    CHANGES,
    COMMON,
    SHORTENED,
    WORDS,
    ZH_COMMON,
    ZH_GENERIC,
    raw_tokens,
    stem,
)

CJK_BEGINS = "\u2e80"


def tokens_of(text: str) -> tuple[str, ...]:
    return tuple([stem(token) if token[-1] == "s" else token for token in raw_tokens(text.lower())])


def content_of(tokens: Sequence[str]) -> Iterator[str]:
    """What says something: words, and pairs of Chinese."""
    return filter(is_word, tokens) if max(tokens, default="") < CJK_BEGINS else _with_pairs(tokens)


def _with_pairs(tokens: Sequence[str]) -> Iterator[str]:
    """Of the one before a value the first half may be a small word: 定投三百, not 级要40分."""
    for token, behind in itertools.pairwise((*tokens, "")):
        if token > CJK_BEGINS:
            pairs = (token[i : i + 2] for i in range(len(token) - 1))
            yield from filter(_is_telling_pair, pairs)
            if behind == "§" and len(token) > 1 and _is_half_telling(token[-2:]):
                yield token[-2:]
        elif is_word(token):
            yield token


@remembered(WORDS)
def _is_telling_pair(pair: str) -> bool:
    return ZH_COMMON.isdisjoint(pair) and pair not in ZH_GENERIC


@remembered(WORDS)
def _is_half_telling(pair: str) -> bool:
    return pair[0] in ZH_COMMON and pair[1] not in ZH_COMMON and not CHANGES.search(pair)


@remembered(WORDS)
def is_word(token: str) -> bool:
    return len(token) > 2 and token[0].isalpha() and token not in COMMON and not token.endswith(SHORTENED)
