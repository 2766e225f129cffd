"""A tokenizer that the configuration names: one of the vocabularies, or a Hugging Face tokenizer.json by its path.

Only a check of the configuration says no ("Unsupported tokenizer: X", C80). While running, what cannot be had is
counted another way: `configured_counter` never raises.
"""

from __future__ import annotations

import logging
from functools import lru_cache
from pathlib import Path

from health.compaction.ports import Grade
from health.tokens.counters import RememberingCounter, counter_for
from health.tokens.encoders import by_tokenizers
from health.tokens.families import family_of

CUSTOM = "custom"
DEFAULT = "gpt-4"

logger = logging.getLogger(__name__)


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
    """Refuses one that cuts what it reads: it would call every long text short (DC29)."""
    from tokenizers import Tokenizer

    file = Path(path).read_bytes()
    if (cut := Tokenizer.from_buffer(file).truncation) is not None:
        raise ValueError(f"it cuts texts at {cut['max_length']} tokens, take the truncation out of the file")
    return RememberingCounter(name=Path(path).name, grade=Grade.EXACT, per_message=4, sizes=by_tokenizers(file))
