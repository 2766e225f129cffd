"""`counter_for(model)`: the counter that estimates the tokens of a model's texts, with a grade of its accuracy.

It uses the model's own vocabulary; if that is missing GPT's (approximate); if that is missing too, characters (rough).
Counts are cached. Nothing is ever downloaded. Estimates drive compaction; the level comes from reported usage alone.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import chain
from pathlib import Path

from health.compaction.terms.ports import Grade
from health.tokens.families import UNKNOWN, Family, Vocabulary, family_of
from health.tokens.vocabularies import Sizes, VocabularyMissing, by_tokenizers, opened

GENERATION = 65_536


class Memory:
    """A cache of the sizes of texts. Threads may share it: at worst a text is counted twice."""

    def __init__(self, generation: int = GENERATION) -> None:
        self._generation = generation
        self._young: dict[int, int] = {}
        self._old: dict[int, int] = {}

    def recall(self, texts: Sequence[str]) -> list[int | None]:
        """Each text's size, or None."""
        young, old = self._young, self._old
        found = [young.get(hash(text)) for text in texts]
        if old and None in found:
            found = [old.get(hash(text)) if size is None else size for text, size in zip(texts, found, strict=True)]
            self.keep((text, size) for text, size in zip(texts, found, strict=True) if size is not None)
        return found

    def keep(self, sizes: Iterable[tuple[str, int]]) -> None:
        for text, size in sizes:
            if len(self._young) >= self._generation:
                self._old, self._young = self._young, {}
            self._young[hash(text)] = size

    def __len__(self) -> int:
        return len(self._young) + len(self._old)


logger = logging.getLogger(__name__)
# The name of a counter that asks the model's own server.
SERVER = "server"


@dataclass(frozen=True, kw_only=True)
class RememberingCounter:
    """A caching `ports.Counter` over any function that measures texts. `name` is the vocabulary's."""

    name: str
    grade: Grade
    per_message: int
    sizes: Sizes = field(repr=False)
    memory: Memory = field(repr=False, compare=False, default_factory=Memory)

    def count(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text alone; only new texts are measured, in one batch. Never raises."""
        found = self.memory.recall(texts)
        if None not in found:
            return [size for size in found if size is not None]
        new = list(dict.fromkeys(text for text, size in zip(texts, found, strict=True) if size is None))
        measured = dict(zip(new, self._measured(new), strict=True))
        self.memory.keep(measured.items())
        return [measured[text] if size is None else size for text, size in zip(texts, found, strict=True)]

    def _measured(self, texts: Sequence[str]) -> list[int]:
        try:
            return _in_pieces(texts, self.sizes)
        except Exception:
            logger.exception("%s could not count: characters are taken instead", self.name)
            return _rough_sizes(texts)


def _in_pieces(texts: Sequence[str], sizes: Sizes) -> list[int]:
    """Measures distinct pieces in one batch: a repeated piece, as in a megabyte of one letter, only once."""
    parts = {text: tuple(pieces(text)) for text in texts if len(text) > PIECE}
    if not parts:
        return sizes(texts)
    distinct = list(dict.fromkeys(chain((text for text in texts if text not in parts), *parts.values())))
    of = dict(zip(distinct, sizes(distinct), strict=True))
    return [sum(of[part] for part in parts[text]) if text in parts else of[text] for text in texts]


def _rough_sizes(texts: Sequence[str]) -> list[int]:
    return [rough(text) for text in texts]


ROUGH = RememberingCounter(name="characters", grade=Grade.ROUGH, per_message=4, sizes=_rough_sizes)


def counter_for(model: str) -> RememberingCounter:
    """The counter of a model, by the model's name. Never raises; one object for all models of a family."""
    return _counter(family_of(model))


@cache
def _counter(family: Family) -> RememberingCounter:
    for vocabulary, grade in ((family.vocabulary, family.grade), (UNKNOWN.vocabulary, Grade.APPROXIMATE)):
        if (sizes := _sizes(vocabulary)) is not None:
            return RememberingCounter(
                name=vocabulary.value,
                grade=grade,
                per_message=family.per_message,
                sizes=sizes,
                memory=_memory(vocabulary),
            )
    return ROUGH


@cache
def _sizes(vocabulary: Vocabulary) -> Sizes | None:
    try:
        return opened(vocabulary)
    except VocabularyMissing as missing:
        logger.warning("no vocabulary %s: estimates are less exact", missing)
        return None


@cache
def _memory(vocabulary: Vocabulary) -> Memory:
    """One cache for each vocabulary, which several families may share."""
    return Memory()


def count_text(text: str, model: str) -> int:
    """Tokens of a text alone, without a message's frame."""
    return counter_for(model).count([text])[0]


# --- Very long texts are counted in pieces, so that the time per character does not grow ---
PIECE = 32_768  # characters
_REACH = 1_000
# A cut here is exact: no vocabulary has a token with the end of a word and the blank after it.
_BEFORE_A_WORD = re.compile(r"(?<=\S) (?=[^\W\d_])")


def pieces(text: str) -> Iterator[str]:
    """The text in order, in pieces of at most `PIECE` characters."""
    start = 0
    while len(text) - start > PIECE:
        end = _border(text, start + PIECE)
        yield text[start:end]
        start = end
    yield text[start:]


def _border(text: str, end: int) -> int:
    """The last cut before a word near `end`, else `end` itself."""
    near = _BEFORE_A_WORD.finditer(text, end - _REACH, end)
    return max((found.start() for found in near), default=end)


# By a character's bytes in UTF-8, which follow its script: Latin; Greek to Arabic; Indic, Chinese to Korean; emoji.
_LETTER, _OTHER_ASCII, _TWO_BYTES, _THREE_BYTES, _FOUR_BYTES = 0.23, 0.75, 0.55, 1.3, 2.5
_LETTERS = b" abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_NOT_TWO, _NOT_THREE, _NOT_FOUR = (
    bytes(set(range(256)) - set(lead)) for lead in (range(0xC0, 0xE0), range(0xE0, 0xF0), range(0xF0, 0x100))
)


def rough(text: str) -> int:
    """About how many tokens a text has, for any model. Linear in its length."""
    raw = text.encode(errors="replace")
    ascii_only = raw.translate(None, bytes(range(0x80, 0x100)))
    others = len(ascii_only.translate(None, _LETTERS))
    return math.ceil(
        _LETTER * (len(ascii_only) - others)
        + _OTHER_ASCII * others
        + _TWO_BYTES * len(raw.translate(None, _NOT_TWO))
        + _THREE_BYTES * len(raw.translate(None, _NOT_THREE))
        + _FOUR_BYTES * len(raw.translate(None, _NOT_FOUR))
    )


# A tokenizer that the configuration names: a vocabulary, or the path of a Hugging Face tokenizer.json. Only the check
# of the configuration refuses a missing one; at run time another counter replaces it.
CUSTOM = "custom"
DEFAULT = "gpt-4"


FOLDER = "tokenizers"


def counter_named(name: str, *, model: str, data: Path) -> RememberingCounter:
    """The counter that an LLM's row names, else the one of its model's name."""
    return configured_counter(*_kind_and_path(name, data)) if name else counter_for(model)


def fault_of_name(name: str, *, data: Path) -> str:
    """The fault of the name in an LLM's row; empty if there is none."""
    return tokenizer_fault(*_kind_and_path(name, data)) if name else ""


def _kind_and_path(name: str, data: Path) -> tuple[str, str]:
    """A file name refers to one folder, so that staff can read no other files."""
    is_file = name.endswith(".json")
    return (CUSTOM, str(data / FOLDER / Path(name).name)) if is_file else (name, "")


def tokenizer_fault(kind: str, path: str = "") -> str:
    """The fault of a configured tokenizer, in one sentence; empty if there is none.

    `kind` is "custom", a vocabulary ("cl100k_base") or a model whose own vocabulary is here ("gpt-4").
    """
    if kind == CUSTOM:
        return _fault(path)
    return "" if family_of(kind).grade is Grade.EXACT else f"Unsupported tokenizer: {kind}"


def configured_counter(kind: str = DEFAULT, path: str = "") -> RememberingCounter:
    """The counter of a configured tokenizer, or GPT's marked approximate."""
    if kind != CUSTOM:
        return counter_for(kind)
    if fault := _fault(path):
        logger.warning("%s Counting with GPT's vocabulary instead.", fault)
        return counter_for("")
    return _loaded(path)


def _fault(path: str) -> str:
    if not path:
        return "A custom tokenizer needs the path of its tokenizer.json: there is no default."
    try:
        _loaded(path)
    except Exception as error:  # `tokenizers` raises nothing narrower
        return f"The tokenizer in {path} cannot be used: {error}."
    return ""


@lru_cache(maxsize=8)
def _loaded(path: str) -> RememberingCounter:
    """The loaded tokenizer. One that truncates is refused: it would count every long text as short."""
    from tokenizers import Tokenizer

    file = Path(path).read_bytes()
    if (cut := Tokenizer.from_buffer(file).truncation) is not None:
        raise ValueError(f"it cuts texts at {cut['max_length']} tokens, take the truncation out of the file")
    return RememberingCounter(name=Path(path).name, grade=Grade.EXACT, per_message=4, sizes=by_tokenizers(file))
