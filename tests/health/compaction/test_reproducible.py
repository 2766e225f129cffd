"""The same messages, the same result, in every process: nothing depends on the order of a set, which is chance."""

from __future__ import annotations

import subprocess
import sys

_WEIGHED = """
from random import Random
from health.compaction.reading.features import Features
from health.compaction.choosing.worth import Question
from health.compaction.reading.sentences import sentences
from health.compaction.terms.units import Role, Unit

draw = Random(7)
words = [f"{one}{two}an" for one in "bcdfghjklm" for two in "aeiou"]
texts = [" ".join(draw.choices(words, k=draw.randint(3, 30))) for _ in range(60)]
"""
_SENTENCES = """
units = [Unit(id=str(at), role=Role.USER, content=text) for at, text in enumerate(texts)]
print([one.worth for one in sentences(units, focus=texts[0])])
"""
_MATCHES = """
asked = Question(texts[1], Features(texts, from_tool=[False] * len(texts)))
print(asked.bm25([len(text) for text in texts], asked.features.each).tolist())
"""


def test_another_process_gives_sentences_the_same_worth() -> None:
    first, *others = (printed(_WEIGHED + _SENTENCES, seed=seed) for seed in "123")

    assert others == [first, first]


def test_another_process_matches_a_task_the_same() -> None:
    first, *others = (printed(_WEIGHED + _MATCHES, seed=seed) for seed in "123")

    assert others == [first, first]


def printed(script: str, *, seed: str) -> bytes:
    run = subprocess.run([sys.executable, "-c", script], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True)
    return run.stdout
