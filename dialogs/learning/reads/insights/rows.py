"""The rows of Insights: figures of each agent with its LLM, how long its compactions took, how far its LLM missed."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from dialogs.learning.reads.insights.figures import Figures, Pair, table
from dialogs.learning.reads.insights.sample import Sample, Took, sample
from dialogs.learning.reads.insights.scope import Scope
from dialogs.models import LLM
from health.models import LlmCalibration
from health.tokens.calibration import Calibration


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


# --- How far the estimates for an LLM missed what its server reported, of the newest twenty reports ---
@dataclass(frozen=True, kw_only=True)
class Missed:
    """Per cent of what was reported: on average whichever way, and with its sign (below nothing: too low)."""

    error: float
    bias: float
    reports: int

    @property
    def signed(self) -> str:
        """The bias with its sign; minus is U+2212."""
        return f"{self.bias:+.1f}".replace("-", "−")


def missed_by(llms: Collection[LLM]) -> dict[int, Missed]:
    """How far estimates for these LLMs were off, by the LLM's key; one without reports is left out."""
    found = {row.llm_id: row.known for row in LlmCalibration.objects.filter(llm__in=llms)}
    return {
        key: Missed(error=known.error_percent, bias=known.bias_percent, reports=len(known.samples))
        for key, known in found.items()
        if isinstance(known, Calibration)
    }
