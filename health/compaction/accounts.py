"""The account of a run: how it ended, what of each message was read, and what was lost.

Lost is what removed text said that a paraphrase destroys, and that stands in the context no more. It is found without a
model and in one pass over both sides: facts are looked up, binding sentences by their runs of words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from health.compaction.laws.weave import without_ledger
from health.compaction.reading.digest import is_notice
from health.compaction.reading.facts import Fact, FactKind, facts, is_binding, normal
from health.compaction.reading.facts_in_play import readable
from health.compaction.reading.ledger_patterns import may_bind
from health.compaction.reading.quoting import sentences
from health.compaction.reading.text import words
from health.compaction.terms.outcome import (
    Code,
    CompactionOutcome,
    Extent,
    LazySequence,
    Loss,
    Receipt,
    Status,
)
from health.compaction.terms.ports import Attempt, Read
from health.compaction.terms.reasons import Reason, Why
from health.compaction.terms.units import Kind, Role, Unit


def applied(untouched: CompactionOutcome, best: Attempt) -> CompactionOutcome:
    """The outcome of what is taken. The ledger is carried on, so it neither leaves nor reads."""
    before, after = untouched.state, untouched.state.with_units(best.state.units)
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
