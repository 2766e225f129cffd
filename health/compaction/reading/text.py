"""Text in pieces: passages (sentences, list items, lines) and words, English and Chinese alike.

A passage is a slice of the original, never a rewriting: what is chosen later is verbatim. Words are lower
case; a run of Chinese, Japanese or Korean is its overlapping pairs, as nothing else finds them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable
from functools import lru_cache, wraps
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

if TYPE_CHECKING:
    from functools import _lru_cache_wrapper

CJK = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_FENCES = ("```", "~~~")
# A sentence ends after its mark and closing quotes; not after a digit's or initial's point.
# The mark comes first: a search then looks at nothing else.
_END = re.compile(
    r"[.!?…。！？；](?:(?<=[.!?…])[\"'”’)\]]*\s+(?=[\"'“‘(\[]*[A-Z0-9¿¡\"'“(])|(?<=[。！？；])[”’」』）]*)"
)
_LONGEST_ABBREVIATION = len("approx.")
_ABBREVIATED = re.compile(r"(?:\b(?:Mr|Mrs|Ms|Dr|Prof|St|No|vs|etc|e\.g|i\.e|approx|Fig|[A-Z]))\.$")
_WORD = re.compile(rf"[{CJK}]++|[^\W_{CJK}]++(?:[-_'][^\W_{CJK}]++)*+")
_ASCII_WORD = re.compile(r"[a-z0-9]++(?:[-_'][a-z0-9]++)*+")


Find = TypeVar("Find", bound=Callable[..., Any])
Found = TypeVar("Found")
Looked = dict[Hashable, Any]
REMEMBERED: list[_lru_cache_wrapper[Any]] = []


def remembered(most: int) -> Callable[[Callable[..., Found]], _lru_cache_wrapper[Found]]:
    """`lru_cache` for what words, sentences, and pairs of them say. It is emptied whenever a generation of texts is
    full: `most` of everything would be hundreds of megabytes."""

    def wrapped(find: Callable[..., Found]) -> _lru_cache_wrapper[Found]:
        REMEMBERED.append(cache := lru_cache(maxsize=most)(find))
        return cache

    return wrapped


class Looks:
    """What was found in texts, by text: a message is read once, however often the conversation it is in is compacted.

    The key is the whole text, so nothing stale is ever found. Bounded by characters: what is not asked for while one
    of two generations fills up is forgotten, and a text that would take much of one is read anew each time. Threads
    may share it: at worst a text is read twice.
    """

    def __init__(self, generation: int) -> None:
        self._generation, self._room = generation, generation
        self.young: dict[Hashable, tuple[Looked, int]] = {}
        self._old: dict[Hashable, tuple[Looked, int]] = {}

    def at(self, text: str) -> Looked:
        """What was found in this text until now, to be added to."""
        found = self.known(text)
        return self.new(text, len(text)) if found is None else found

    def known(self, key: Hashable) -> Looked | None:
        entry = self.young.get(key)
        if entry is None:
            entry = self._old.get(key)
            if entry is None:
                return None
            self._keep(key, entry)
        if len(entry[0]) > MOST_LOOKS:
            entry[0].clear()
        return entry[0]

    def new(self, key: Hashable, chars: int) -> Looked:
        """An empty one to be added to; it is kept, unless it would take much of the room."""
        found: Looked = {}
        if chars <= self._generation // 8:
            self._keep(key, (found, chars + EACH))
        return found

    def _keep(self, key: Hashable, entry: tuple[Looked, int]) -> None:
        if self._room <= 0:
            self._old, self.young, self._room = self.young, {}, self._generation
            for cache in REMEMBERED:
                cache.cache_clear()
        self.young[key] = entry
        self._room -= entry[1]

    def __len__(self) -> int:
        return len(self.young) + len(self._old)


# Characters of a generation, EACH counted for every text beside its own; what is found takes 5 to 20 bytes for each, so
# at most some 80 MB are held, of a million tokens.
GENERATION, EACH = 2_000_000, 200
# Of "ok", which many say, no more is held.
MOST_LOOKS = 500
LOOKS = Looks(GENERATION)


def of_text(find: Find) -> Find:
    """`find`, which depends on nothing but a text and what else it is handed, asked once of each text. What it returns
    is shared, so it must not be changed.
    """

    @wraps(find)
    def asked(text: str, *besides: Hashable) -> Any:
        entry = LOOKS.young.get(text)  # as most are, and this is asked thousands of times in a compaction
        looks, key = entry[0] if entry else LOOKS.at(text), (find, *besides) if besides else find
        if key not in looks:
            if len(looks) > MOST_LOOKS:
                looks.clear()
            looks[key] = find(text, *besides)
        return looks[key]

    return cast("Find", asked)


class Passage(NamedTuple):
    """`text == source[start:end]`; `code` marks lines inside a fence."""

    start: int
    end: int
    text: str
    code: bool = False


@of_text
def passages(text: str) -> tuple[Passage, ...]:
    """The passages of a text in order. Blank lines and blanks between them belong to none."""
    found: list[Passage] = []
    at, fenced = 0, False
    for line in text.splitlines(keepends=True):
        mark = line.lstrip().startswith(_FENCES)
        if fenced or mark:
            _add(found, text, at, at + len(line), code=True)
            fenced = fenced != mark
        else:
            _add_sentences(found, text, at, line)
        at += len(line)
    return tuple(found)


def _add_sentences(found: list[Passage], text: str, at: int, line: str) -> None:
    start = 0
    for end in _END.finditer(line):
        if line[end.start()] == "." and _is_abbreviation(line, start, end.start() + 1):
            continue
        _add(found, text, at + start, at + end.end(), code=False)
        start = end.end()
    _add(found, text, at + start, at + len(line), code=False)


def _is_abbreviation(line: str, start: int, end: int) -> bool:
    return _ABBREVIATED.search(line, max(start, end - _LONGEST_ABBREVIATION), end) is not None


def _add(found: list[Passage], text: str, start: int, end: int, *, code: bool) -> None:
    bare = text[start:end].rstrip() if code else text[start:end].strip()
    if bare:
        begin = text.index(bare, start)
        found.append(Passage(begin, begin + len(bare), bare, code))


def one_of(phrases: Iterable[str]) -> str:
    """An expression for any of some phrases that begin with a letter each: of most words it looks at no other."""
    by_letter: dict[str, list[str]] = {}
    for phrase in phrases:
        by_letter.setdefault(phrase[0], []).append(phrase[1:])
    return "|".join(f"{letter}(?:{'|'.join(rests)})" for letter, rests in by_letter.items())


def words(text: str) -> list[str]:
    """The words of a text, in order, repetitions included."""
    low = text.lower()
    if low.isascii():
        return _ASCII_WORD.findall(low)
    found: list[str] = []
    for word in _WORD.findall(low):
        if word[0] > "\u2e80":
            found.extend(word[i : i + 2] for i in range(max(1, len(word) - 1)))
        else:
            found.append(word)
    return found


# English words that say nothing by themselves. Chinese needs no such list: frequent pairs weigh little anyway.
STOPWORDS = frozenset(
    """
    a about after again all also am an and any are as at back be because been before being but by can cannot could
    did do does doing don done down each even ever every false few for from further get gets getting go goes going
    gone good got great had has have having he hello her here hers hey hi him his how i i'd i'll i'm i've if in into
    is isn't it it's its itself just know let let's like look lot made make maybe me might more most much my myself
    nice no none nor not now null of off oh ok okay on once one only or other our ours out over own please quite re
    really right said same say see seems she should so some something soon still such sure take than thank thanks
    that that's the their them then there these they they're thing things think this those though through to today
    too true try two under until up us use used very want was wasn't way we we'll well were what when where which
    while who whom why will with would yeah yes yet you you'd you'll you're your yours
    """.split()  # noqa: SIM905 (a list of words reads best as text)
)
