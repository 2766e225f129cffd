"""The rows of Insights: figures of each agent with its LLM, how long its compactions took, how far its LLM missed."""

from __future__ import annotations

from dataclasses import dataclass

from dialogs.selectors.insights.errors import Missed, missed_by
from dialogs.selectors.insights.figures import Figures, Pair, table
from dialogs.selectors.insights.sample import Sample, Took, sample
from dialogs.selectors.insights.scope import Scope


@dataclass(frozen=True, kw_only=True)
class Row:
    """Without a pair it is the row of all."""

    figures: Figures
    took: Took | None
    missed: Missed | None = None
    pair: Pair | None = None


@dataclass(frozen=True, kw_only=True)
class Rows:
    """`left_out` are those beyond the most that are shown; `sample` tells of the newest runs of all."""

    pairs: tuple[Row, ...]
    total: Row
    left_out: int
    sample: Sample


def rows(scope: Scope) -> Rows:
    found, runs = table(scope), sample(scope)
    missed = missed_by({pair.llm for pair in found.pairs if pair.llm})
    return Rows(
        pairs=tuple(
            Row(pair=pair, figures=pair.figures, took=runs.took.get(pair.key), missed=missed.get(pair.key[1] or 0))
            for pair in found.pairs
        ),
        total=Row(figures=found.total, took=runs.all_took),
        left_out=found.left_out,
        sample=runs,
    )
