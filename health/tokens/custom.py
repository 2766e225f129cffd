"""A tokenizer that the configuration names: one of the vocabularies, or a Hugging Face tokenizer.json by its path.

Only a check of the configuration says no ("Unsupported tokenizer: X"). While running, what cannot be had is counted
another way: `configured_counter` never raises.
"""

from __future__ import annotations

import logging
from functools import lru_cache
from pathlib import Path

from health.compaction.terms.ports import Grade
from health.tokens.counters import RememberingCounter, counter_for
from health.tokens.encoders import by_tokenizers
from health.tokens.families import family_of

CUSTOM = "custom"
DEFAULT = "gpt-4"

logger = logging.getLogger(__name__)


FOLDER = "tokenizers"


def counter_named(name: str, *, model: str, data: Path) -> RememberingCounter:
    """The counter that an LLM's row names, or that of its model's name where it names none."""
    return configured_counter(*_kind_and_path(name, data)) if name else counter_for(model)


def fault_of_name(name: str, *, data: Path) -> str:
    """What is wrong with the name in an LLM's row; empty if it can be used."""
    return tokenizer_fault(*_kind_and_path(name, data)) if name else ""


def _kind_and_path(name: str, data: Path) -> tuple[str, str]:
    """A file's name stands for a file of one folder: staff choose among these, and read no others."""
    is_file = name.endswith(".json")
    return (CUSTOM, str(data / FOLDER / Path(name).name)) if is_file else (name, "")


def tokenizer_fault(kind: str, path: str = "") -> str:
    """What is wrong with a configured tokenizer, in one sentence; empty if it can be used.

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
    """Refuses one that cuts what it reads: it would call every long text short."""
    from tokenizers import Tokenizer

    file = Path(path).read_bytes()
    if (cut := Tokenizer.from_buffer(file).truncation) is not None:
        raise ValueError(f"it cuts texts at {cut['max_length']} tokens, take the truncation out of the file")
    return RememberingCounter(name=Path(path).name, grade=Grade.EXACT, per_message=4, sizes=by_tokenizers(file))
