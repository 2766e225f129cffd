"""Detects four signs that an agent is in a loop, in its answers and calls since a person's last message. PURE.

Progress ends a loop: a call with a result that no earlier call of these steps had. So polling a server until its answer
changes, or running the same tests after each change, is no loop. A context over its limit is no sign by itself, but
then one repetition less is enough.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

# A check is due after this many calls, and looks at this many of the newest answers.
EVERY_CALLS = 20
MOST_STEPS = 40
# How many equal calls or errors, similar answers, and answers each shorter than the one before make a loop.
REPEATED, ALIKE, SHRINKING = 3, 3, 5
ALIKE_ABOVE = 0.85
# Of shorter texts, at least of the second length, so many must be alike: "Done." after "Done." says nothing.
LEAST_CHARACTERS = 80
LEAST_SHORT, ALIKE_SHORT = 20, 6
# A Chinese, Japanese or Korean character counts as this many letters.
LETTERS_A_SIGN = 3
_SIGN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
# Times and durations: they differ in each result and are not progress.
_TIMES = re.compile(
    r"\b(?:\d{4}-\d\d-\d\d[T ])?\d{1,2}:\d\d:\d\d(?:[.,]\d{1,9})?"
    r"|\b1\d{9}(?:\d{3})?(?:\.\d{1,9})?\b"
    r"|\d{1,9}(?:\.\d{1,9})? ?(?:(?:[nmuµ]?s|secs?|seconds?|min|minutes?|h|hours?)\b|[毫微纳]?秒|分钟|小时)"
)
# Shrinking answers: the first must have this many characters, and the last at most half of the first.
LEAST_TO_SHRINK = 200


class SignKind(StrEnum):
    CALLS = "equal_calls"
    ERRORS = "equal_errors"
    ANSWERS = "similar_answers"
    SHRINKING = "shrinking_answers"


@dataclass(frozen=True, kw_only=True)
class EndedCall:
    """A call that has ended. Arguments and outcome are only compared: hashes are enough."""

    name: str
    arguments: str
    outcome: str
    failed: bool = False


@dataclass(frozen=True, kw_only=True)
class AnswerStep:
    """One answer, and its calls."""

    text: str = ""
    calls: tuple[EndedCall, ...] = ()


@dataclass(frozen=True, kw_only=True)
class LoopSign:
    """`count` calls of `tool`, or answers. Answers also have numbers: percent alike; characters of first and last."""

    kind: SignKind
    count: int
    tool: str = ""
    numbers: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class LoopFinding:
    """`over_hits`: how often the context was over its limit meanwhile."""

    seen: tuple[LoopSign, ...]
    over_hits: int = 0


def find_loop(steps: Sequence[AnswerStep], *, over_hits: int = 0) -> LoopFinding | None:
    """The signs of a loop at the end of these steps, oldest first; None if there are none."""
    steps = steps[-MOST_STEPS:]
    less = 1 if over_hits else 0
    texts = _texts(steps)
    seen = (
        *_repeated(steps, SignKind.CALLS, _as_call, enough=REPEATED - less),
        *_repeated(steps, SignKind.ERRORS, _as_error, enough=REPEATED - less),
        *_answers_alike(texts, less=less),
        *_shrinking([len(text) for text in texts], enough=SHRINKING - less),
    )
    return LoopFinding(seen=seen, over_hits=over_hits) if seen else None


def _as_call(call: EndedCall) -> Hashable:
    return None if call.failed else (call.name, call.arguments, _timeless(call.outcome))


def _as_error(call: EndedCall) -> Hashable:
    """What two equal errors have in common: the tool and the message, not the arguments."""
    return (call.name, _timeless(call.outcome)) if call.failed else None


def _timeless(outcome: str) -> str:
    return _TIMES.sub("", outcome)


def _with_progress(steps: Sequence[AnswerStep]) -> Iterator[tuple[AnswerStep, bool]]:
    """Each step, and whether one of its calls had a result that is new among these steps."""
    known: set[Hashable] = set()
    for step in steps:
        brought = {_as_call(call) for call in step.calls if not call.failed}
        yield step, not brought <= known
        known |= brought


def _repeated(
    steps: Sequence[AnswerStep], kind: SignKind, key: Callable[[EndedCall], Hashable], *, enough: int
) -> Iterator[LoopSign]:
    """Calls repeated since the last progress. Steps are counted: equal calls of one answer count once."""
    counts = Counter[Hashable]()
    names = {key(call): call.name for step in steps for call in step.calls}
    for step, is_new in _with_progress(steps):
        if is_new:
            counts.clear()
        counts.update({found for call in step.calls if (found := key(call)) is not None})
    for found, count in counts.most_common():
        if count >= enough:
            yield LoopSign(kind=kind, count=count, tool=names[found])


def _texts(steps: Sequence[AnswerStep]) -> list[str]:
    """The texts of the answers since the last progress; answers that only make calls have none."""
    texts: list[str] = []
    for step, is_new in _with_progress(steps):
        if is_new:
            texts.clear()
        if step.text.strip():
            texts.append(step.text.strip())
    return texts


def _answers_alike(texts: list[str], *, less: int) -> tuple[LoopSign, ...]:
    for least, enough in ((LEAST_CHARACTERS, ALIKE), (LEAST_SHORT, ALIKE_SHORT)):
        if found := tuple(_alike([text for text in texts if _letters(text) >= least], enough=enough - less)):
            return found
    return ()


def _letters(text: str) -> int:
    return len(text) + (LETTERS_A_SIGN - 1) * len(_SIGN.findall(text))


def _alike(texts: list[str], *, enough: int) -> Iterator[LoopSign]:
    """The newest answers in a row that are each similar to the one before."""
    found: list[float] = []
    for at in range(len(texts) - 1, 0, -1):
        like = likeness(texts[at - 1], texts[at])
        if like <= ALIKE_ABOVE:
            break
        found.append(like)
    if len(found) + 1 >= enough:
        yield LoopSign(kind=SignKind.ANSWERS, count=len(found) + 1, numbers=(int(min(found) * 100),))


def _shrinking(lengths: list[int], *, enough: int) -> Iterator[LoopSign]:
    start = len(lengths) - 1
    while start > 0 and lengths[start - 1] > lengths[start]:
        start -= 1
    shrunk = lengths[start:]
    if len(shrunk) >= enough and shrunk[0] >= LEAST_TO_SHRINK and shrunk[-1] * 2 <= shrunk[0]:
        yield LoopSign(kind=SignKind.SHRINKING, count=len(shrunk), numbers=(shrunk[0], shrunk[-1]))


# --- The similarity of two texts in any language, in linear time ---
PIECE = 3
# Only the two ends of a longer text are read.
MOST_CHARACTERS = 20_000


def likeness(first: str, second: str) -> float:
    """The Dice coefficient of their trigrams of characters, from 0 to 1. Case and blanks do not count."""
    ours, theirs = _pieces(first), _pieces(second)
    pieces = ours.total() + theirs.total()
    return 2 * (ours & theirs).total() / pieces if pieces else 1.0


def _pieces(text: str) -> Counter[str]:
    half = MOST_CHARACTERS // 2
    read = text if len(text) <= MOST_CHARACTERS else f"{text[:half]} {text[-half:]}"
    plain = " ".join(read.casefold().split())
    return Counter(plain[at : at + PIECE] for at in range(max(1, len(plain) - PIECE + 1))) if plain else Counter()
