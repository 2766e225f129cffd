"""One table of what methods keep: ours with its interval, chance, the best rival, the lead over it, and the oracle.

Intervals are 95 %, by bootstrap over conversations, since the cases of one conversation are not independent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.knowledge import COUNTED, Figures

OURS, CHANCE, ORACLE = "ours", "random rounds", "oracle"
DRAWS = 2000
HEADS = ("", "tokens", "figure", "ours (95 %)", "chance", "best rival", "ahead by (95 %)", "oracle", "cases")


@dataclass(frozen=True, kw_only=True)
class Row:
    """What one method kept of one case."""

    kind: str
    ratio: str
    method: str
    case: str
    conversation: str
    figures: Figures


# The figures of one kind at one ratio, by method and case.
Group = Mapping[str, Mapping[str, Row]]


def grouped(rows: Iterable[Row]) -> dict[tuple[str, str], dict[str, dict[str, Row]]]:
    found: dict[tuple[str, str], dict[str, dict[str, Row]]] = {}
    for row in rows:
        found.setdefault((row.kind, row.ratio), {}).setdefault(row.method, {})[row.case] = row
    return found


def table_lines(rows: Iterable[Row]) -> Iterator[str]:
    lines = [HEADS, *(line for key, group in grouped(rows).items() for line in _of_group(key, group))]
    widths = [max(len(line[at]) for line in lines) for at in range(len(HEADS))]
    for line in lines:
        yield "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()


def _of_group(key: tuple[str, str], group: Group) -> Iterator[tuple[str, ...]]:
    ours = group[OURS]
    names = dict.fromkeys(name for row in ours.values() for name in row.figures)
    conversations = len({row.conversation for row in ours.values()})
    for name in (name for name in names if any(row.figures[name] is not None for row in ours.values())):
        cells = _counted(group, name) if name in COUNTED else _shared(group, name)
        yield (key[0], f"{key[1]} %", name, *cells, f"{len(ours)} of {conversations}")


def _counted(group: Group, name: str) -> tuple[str, ...]:
    sums = {method: sum(row.figures[name] or 0 for row in rows.values()) for method, rows in group.items()}
    least = min(_rivals(group), key=sums.__getitem__)
    return f"{sums[OURS]:.0f}", f"{sums[CHANCE]:.0f}", f"{sums[least]:.0f} {least}", "", f"{sums[ORACLE]:.0f}"


def _shared(group: Group, name: str) -> tuple[str, ...]:
    means = {method: mean(rows.values(), name) for method, rows in group.items()}
    best = max(_rivals(group), key=means.__getitem__)
    low, high = interval(group[OURS].values(), _figure(name))
    return (
        f"{100 * means[OURS]:5.1f} ({100 * low:.0f} to {100 * high:.0f})",
        f"{100 * means[CHANCE]:.1f}",
        f"{100 * means[best]:.1f} {best}",
        lead(group, name, best),
        f"{100 * means[ORACLE]:.1f}",
    )


def _rivals(group: Group) -> list[str]:
    """Whole methods of others: variants of ours begin with its name."""
    return [method for method in group if not method.startswith(OURS) and method != ORACLE]


def lead(group: Group, name: str, rival: str) -> str:
    other = group[rival]

    def ahead(row: Row) -> float | None:
        mine, theirs = row.figures[name], other[row.case].figures[name]
        return None if mine is None or theirs is None else mine - theirs

    values = [value for row in group[OURS].values() if (value := ahead(row)) is not None]
    low, high = interval(group[OURS].values(), ahead)
    return f"{100 * sum(values) / (len(values) or 1):+.1f} ({100 * low:+.0f} to {100 * high:+.0f})"


def mean(rows: Iterable[Row], name: str) -> float:
    values = [value for row in rows if (value := row.figures.get(name)) is not None]
    return sum(values) / (len(values) or 1)


def _figure(name: str) -> Callable[[Row], float | None]:
    return lambda row: row.figures[name]


def interval(rows: Iterable[Row], value_of: Callable[[Row], float | None]) -> tuple[float, float]:
    """Of the mean over cases, where whole conversations are drawn."""
    by: dict[str, list[float]] = {}
    for row in rows:
        if (value := value_of(row)) is not None:
            by.setdefault(row.conversation, []).append(float(value))
    return drawn([*by.values()]) if by else (0.0, 0.0)


def drawn(clusters: Sequence[Sequence[float]]) -> tuple[float, float]:
    sums: NDArray[np.float64] = np.array([sum(values) for values in clusters])
    counts: NDArray[np.float64] = np.array([len(values) for values in clusters], dtype=float)
    picks = np.random.default_rng(7).integers(0, len(clusters), (DRAWS, len(clusters)))
    low, high = np.percentile(sums[picks].sum(axis=1) / counts[picks].sum(axis=1), [2.5, 97.5])
    return float(low), float(high)
