"""The account of a run: what was read, what was lost, how coherent the result is, and what the run was worth.

Lost is what removed text said that a paraphrase destroys, and that stands in the context no more. It is found without a
model and in one pass over both sides: facts are looked up, binding sentences by their runs of words.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from health.compaction.choosing.scoring import coherence, query_of
from health.compaction.laws.weave import without_ledger
from health.compaction.reading.digest import is_notice
from health.compaction.reading.facts import Fact, FactKind, facts, is_binding, normal
from health.compaction.reading.facts_in_play import readable
from health.compaction.reading.ledger_patterns import may_bind
from health.compaction.reading.quoting import sentences
from health.compaction.reading.text import words
from health.compaction.terms.outcome import (
    BreakingOutcome,
    Code,
    CompactionOutcome,
    Extent,
    LazySequence,
    Loss,
    Receipt,
    Status,
    Step,
)
from health.compaction.terms.ports import Attempt, Need, Read
from health.compaction.terms.reasons import Reason, Why
from health.compaction.terms.units import WRITTEN, ContextState, Kind, Priority, Role, Unit


def applied(untouched: CompactionOutcome, best: Attempt) -> CompactionOutcome:
    """The outcome of what is taken. The ledger is carried on, so it neither leaves nor reads."""
    before, after = untouched.state, untouched.state.having(best.state.units)
    old, new = without_ledger(before).units, without_ledger(after).units
    return replace(
        untouched,
        status=Status.APPLIED,
        state=after,
        estimated_tokens_after=after.estimated_tokens,
        coverage=receipts(old, new, best.reads),
        # Finding them takes a fifth of the time of compacting: only where somebody asks.
        losses=LazySequence(partial(losses, altered(old, new), after.units)),
        removed_ids=removed_ids(old, new),
        why=Reason(Why.REDUCED, {"tokens": after.estimated_tokens, "limit": after.limit}),
        forced_ids=best.forced_ids,
        warnings=(*untouched.warnings, *(step.why for step in best.forced)),
    )


def failed(untouched: CompactionOutcome, code: Code, why: Reason) -> CompactionOutcome:
    return replace(untouched, status=Status.FAILED, code=code, why=why)


def coherence_of(before: ContextState, after: ContextState) -> Generator[Need, Any, tuple[float | None, float]]:
    """Coherence of the result, and its difference to the original's own; None and 0 where it cannot be told."""
    query = query_of(before)
    try:
        now = yield from coherence(before.units, after.units, query=query)
        then = yield from coherence(before.units, before.units, query=query)
    except Exception:
        return None, 0.0
    return now, now - then


def rewarded(
    outcome: CompactionOutcome, before: ContextState, steps: Sequence[Step], *, coherence_delta: float
) -> CompactionOutcome:
    """The outcome with its steps, and its reward for the engine's time in them all. What was skipped earned nothing.

    How long a model took to answer says nothing of a chain: it depends on the machine that the model runs on.
    """
    outcome = replace(outcome, steps=tuple(steps))
    if outcome.status is Status.SKIPPED:
        return outcome
    run = BreakingOutcome(
        success=outcome.status is Status.APPLIED,
        used_recovery=outcome.recovered is not None,
        coherence_delta=coherence_delta,
        tokens_reduced=outcome.estimated_tokens_before - outcome.estimated_tokens_after,
        time_ms=sum(step.ms - step.waited_ms for step in steps),
        priority_preserved=priority_preserved(before.units, outcome.state.units),
        original_tokens=outcome.estimated_tokens_before,
    )
    return replace(outcome, breaking=run, reward=reward(run))


def counted_from(outcome: CompactionOutcome, tokens_before: int) -> CompactionOutcome:
    """The outcome with its reward for what the model was sent before, where a run chose from more than that."""
    if outcome.breaking is None:
        return outcome
    reduced = tokens_before - outcome.estimated_tokens_after
    run = replace(outcome.breaking, tokens_reduced=reduced, original_tokens=tokens_before)
    return replace(outcome, breaking=run, reward=reward(run))


# --- The reward of a run, from -2 to 2, for later learning ---
SLOW_MS = 500
LEAST, MOST = -2.0, 2.0


def reward(run: BreakingOutcome) -> float:
    """Success earns by coherence, tokens and priorities; recovery and slowness cost."""
    earned = -1.0
    if run.success:
        share = run.tokens_reduced / run.original_tokens if run.original_tokens else 0.0
        earned = 1.0 + run.coherence_delta * 0.5 + share * 0.3 + run.priority_preserved * 0.2
    if run.used_recovery:
        earned -= 0.7
    if run.time_ms > SLOW_MS:
        earned -= run.time_ms / 1000 * 0.1
    return max(LEAST, min(MOST, earned))


def priority_preserved(before: Sequence[Unit], after: Sequence[Unit]) -> float:
    """The share of P1 messages that stand word for word, 1 where there are none. Handovers do not count."""
    standing = {unit.id: unit.content for unit in after}
    first = [unit for unit in before if unit.priority is Priority.P1 and unit.kind not in WRITTEN]
    return sum(standing.get(unit.id) == unit.content for unit in first) / len(first) if first else 1.0


# --- Coverage: of each message that left the context, how much was read by what replaced it ---
# A reading counts only while something that was made of it stands: a summary that was dropped later read nothing.
def removed_ids(before: Sequence[Unit], after: Sequence[Unit]) -> tuple[str, ...]:
    """What no longer stands, not even shortened. In order."""
    standing = {unit.id for unit in after}
    return tuple(unit.id for unit in before if unit.id not in standing)


def altered(before: Sequence[Unit], after: Sequence[Unit]) -> list[Unit]:
    """The originals of what was removed or shortened, in order."""
    said = {unit.id: unit.content for unit in after}
    return [unit for unit in before if said.get(unit.id) != unit.content]


def receipts(before: Sequence[Unit], after: Sequence[Unit], reads: Iterable[Read]) -> tuple[Receipt, ...]:
    """One receipt for every message that was removed or shortened, in order."""
    # A message counts as read in what was made of it: a summary, a digest, or the notice of a choice of passages, for
    # which all of them were weighed.
    made = [unit for unit in after if unit.kind is Kind.SUMMARY or is_notice(unit)]
    accounted = {source for unit in made for source in unit.sources}
    furthest = {read.source_id: read.read for read in sorted(reads, key=lambda read: read.read)}
    left = {unit.id: len(unit.content) for unit in after}
    found: list[Receipt] = []
    for unit in altered(before, after):
        # An earlier summary is named by itself or by what it stood for.
        names = (unit.id, *unit.source_ids)
        read = 0 if accounted.isdisjoint(names) else max(furthest.get(name, 0) for name in names)
        # What was shortened where it stands was read at least as far as it still stands.
        found.append(_receipt(unit, max(read, left.get(unit.id, 0))))
    return tuple(found)


def _receipt(unit: Unit, read: int) -> Receipt:
    total = len(unit.content)
    extent = Extent.IN_FULL if read >= total else Extent.IN_PART if read else Extent.NOT_AT_ALL
    return Receipt(source_id=unit.id, extent=extent, read=min(read, total), total=total)


MOST_LOSSES = 500
BINDING = "binding"
_RUN = 4


def losses(removed: Sequence[Unit], standing: Sequence[Unit]) -> tuple[Loss, ...]:
    """Each fact and binding sentence of `removed` once, the user's first, each in order.

    At most MOST_LOSSES; where there are more, those that still stand are left out first.
    """
    context = _Standing(standing)
    found: dict[tuple[str, str], Loss] = {}
    for unit in sorted(removed, key=lambda unit: unit.role is not Role.USER):
        for key, loss in _losses(unit, context):
            found.setdefault(key, loss)
    every = list(found.values())
    lost_first = sorted(range(len(every)), key=lambda at: every[at].kept)
    return tuple(every[at] for at in sorted(lost_first[:MOST_LOSSES]))


class _Standing:
    """What stands: its facts, and its runs of words."""

    def __init__(self, standing: Sequence[Unit]) -> None:
        self._texts = [readable(unit) for unit in standing]
        self._facts = {(fact.kind, normal(fact)) for text in self._texts for fact in facts(text)}
        self._runs: dict[int, set[tuple[str, ...]]] = {}

    def has(self, fact: Fact) -> bool:
        """A longer fact may also stand inside another: a command in a line, a message in a log."""
        found = (fact.kind, normal(fact)) in self._facts
        return found or (fact.kind in (FactKind.COMMAND, FactKind.ERROR) and self.says(fact.text))

    def says(self, text: str) -> bool:
        """Word for word, whatever stands between the words: each run of its words is one of a standing text's."""
        said = words(text)
        size = min(_RUN, len(said))
        return _runs(said, size) <= self._runs_of(size)

    def _runs_of(self, size: int) -> set[tuple[str, ...]]:
        if size not in self._runs:
            self._runs[size] = set().union(*(_runs(words(text), size) for text in self._texts))
        return self._runs[size]


def _runs(said: list[str], size: int) -> set[tuple[str, ...]]:
    return set(zip(*(said[start:] for start in range(size)), strict=False))


def _losses(unit: Unit, context: _Standing) -> Iterator[tuple[tuple[str, str], Loss]]:
    text = readable(unit)
    for fact in facts(text):
        kind = fact.kind.value
        yield (kind, normal(fact)), Loss(text=fact.text, kind=kind, source_id=unit.id, kept=context.has(fact))
    for sentence in sentences(text) if may_bind(text) else ():
        if is_binding(sentence):
            key = (BINDING, " ".join(words(sentence)))
            yield key, Loss(text=sentence, kind=BINDING, source_id=unit.id, kept=context.says(sentence))
