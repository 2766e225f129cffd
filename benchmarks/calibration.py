"""Bring other embedders' cosines to MiniLM's scale: `python -m benchmarks.calibration` prints the points.

Over generated conversations of every kind it asks each embedder the same things: how relevant each message is, and
how coherent true summaries, other conversations' summaries and random cuts are. Values of equal rank are equal.
The points stand in `health/compaction/choosing/scoring.py`; the lines below them show what those bounds then let
through.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.devset import cases
from health.adapters.embeddings import StaticVectors
from health.adapters.minilm import MiniLM
from health.compaction.choosing import scoring
from health.compaction.choosing.summaries import extractive
from health.compaction.reading import lexical
from health.compaction.reading.messages import parse
from health.compaction.terms.ports import Embed, Embedded, Kit
from health.compaction.terms.units import ContextState, Kind, Role, Unit
from health.tokens.counters import counter_for

SEED, KINDS, CASES_A_KIND, MESSAGES, CHARACTERS = 901, ("chat", "service", "code"), 4, 60, 9_000
OLD = 0.6  # the share that summarize_old summarises
RANKS = (10, 25, 50, 75, 90, 97)
KIT = Kit(counter=counter_for("gpt-4o"))

Answer = Callable[[Embed], Embedded]


def main() -> None:
    scoring.RELEVANCE_SCALES.clear()
    scoring.COHERENCE_SCALES.clear()
    states = [_state(case) for kind in KINDS for case in cases(kind, SEED, CASES_A_KIND, chars=CHARACTERS)]
    pairs = list(_pairs(states))
    measured = {name: _measured(answer, states, pairs) for name, answer in _embedders().items()}
    for quantity in ("relevance", "coherence"):
        for name in ("wordllama", "lexical"):
            theirs, ours = (np.percentile(measured[one][quantity], RANKS) for one in (name, "minilm"))
            print(quantity, name, [(round(float(x), 2), round(float(y), 2)) for x, y in zip(theirs, ours, strict=True)])
    _show(pairs, {name: values["coherence"] for name, values in measured.items()})


def _state(case: Any) -> ContextState:
    units = [unit for unit in KIT.counted(parse(case.messages).units) if unit.content][:MESSAGES]
    return ContextState(units=tuple(units), limit=1_000, task=case.task)


def _pairs(states: list[ContextState]) -> Iterator[tuple[str, tuple[Unit, ...], tuple[Unit, ...], str]]:
    """A label, the units before and after, and the query."""
    rng = random.Random(SEED)
    olds = [state.units[: int(len(state.units) * OLD)] for state in states]
    summaries = [_summary(old) for old in olds]
    for at, (state, old) in enumerate(zip(states, olds, strict=True)):
        query, new = scoring.query_of(state), state.units[len(old) :]
        sources = tuple(unit.id for unit in old)
        for label, step in (("true", 0), ("same kind's", 1), ("other kind's", CASES_A_KIND)):
            told = replace(summaries[(at + step) % len(states)], source_ids=sources)
            yield f"{label} summary, alone", old, (told,), ""
            yield f"{label} summary, in context", state.units, (told, *new), query
        for share in (0.3, 0.6, 0.9):
            kept = tuple(unit for unit in state.units if rng.random() > share) or state.units[-1:]
            yield f"{share:.0%} dropped by chance", state.units, kept, query


def _summary(units: tuple[Unit, ...]) -> Unit:
    told = _finished(extractive(units, max_tokens=300, kit=KIT), lambda need: lexical.vectors(need.texts))
    return Unit(id="told", role=Role.USER, kind=Kind.SUMMARY, content=told.text)


def _embedders() -> dict[str, Answer]:
    minilm, static, known = MiniLM(), StaticVectors(), dict[str, Any]()

    def by_minilm(need: Embed) -> Embedded:
        missing = [text for text in dict.fromkeys(need.texts) if text not in known]
        known.update(zip(missing, minilm.encode(missing), strict=True) if missing else ())
        return Embedded(vectors=np.stack([known[text] for text in need.texts]), name=minilm.name)

    return {
        "minilm": by_minilm,
        "wordllama": lambda need: Embedded(vectors=static.encode(need.texts), name=static.name),
        "lexical": lambda need: lexical.vectors(need.texts),
    }


def _measured(answer: Answer, states: list[ContextState], pairs: list[Any]) -> dict[str, list[float]]:
    relevance = [_finished(scoring.relevance(state, KIT, state.units), answer).scores.values() for state in states]
    coherence = [_finished(scoring.coherence(old, new, query=query), answer) for _, old, new, query in pairs]
    return {"relevance": [score for each in relevance for score in each], "coherence": coherence}


def _show(pairs: list[Any], coherence: dict[str, list[float]]) -> None:
    for label in dict.fromkeys(pair[0] for pair in pairs):
        places = [at for at, pair in enumerate(pairs) if pair[0] == label]
        cells = [np.percentile(np.array(values)[places], (0, 50, 100)) for values in coherence.values()]
        print(f"{label:32}", *(f"{low:.2f} {middle:.2f} {high:.2f}  " for low, middle, high in cells))


def _finished(asking: Any, answer: Answer) -> Any:
    try:
        need = next(asking)
        while True:
            need = asking.send(answer(need))
    except StopIteration as end:
        return end.value


if __name__ == "__main__":
    main()
