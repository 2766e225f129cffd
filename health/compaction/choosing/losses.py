"""The loss view: what removed text said that a paraphrase destroys, and whether it still stands in the context.

Without a model and in one pass over both sides: facts are looked up, binding sentences by their runs of words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from health.compaction.reading.facts import Fact, FactKind, facts, is_binding, normal
from health.compaction.reading.facts_in_play import readable
from health.compaction.reading.ledger_patterns import may_bind
from health.compaction.reading.quoting import sentences
from health.compaction.reading.text import words
from health.compaction.terms.later import Later
from health.compaction.terms.outcome import Loss
from health.compaction.terms.units import Role, Unit

MOST_LOSSES = 500
BINDING = "binding"
_RUN = 4


class LossView(Later[Loss]):
    """The losses of one run: finding them takes a fifth of the time of compacting."""

    def __init__(self, removed: Sequence[Unit], standing: Sequence[Unit]) -> None:
        super().__init__(partial(losses, tuple(removed), tuple(standing)))


def losses(removed: Sequence[Unit], standing: Sequence[Unit]) -> tuple[Loss, ...]:
    """Each fact and binding sentence of `removed` once, the user's first, each in order.

    At most MOST_LOSSES; where there are more, those that still stand are left out first.
    """
    context = _Context(standing)
    found: dict[tuple[str, str], Loss] = {}
    for unit in sorted(removed, key=lambda unit: unit.role is not Role.USER):
        for key, loss in _losses(unit, context):
            found.setdefault(key, loss)
    told = list(found.values())
    lost_first = sorted(range(len(told)), key=lambda at: told[at].kept)
    return tuple(told[at] for at in sorted(lost_first[:MOST_LOSSES]))


class _Context:
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


def _losses(unit: Unit, context: _Context) -> Iterator[tuple[tuple[str, str], Loss]]:
    text = readable(unit)
    for fact in facts(text):
        kind = fact.kind.value
        yield (kind, normal(fact)), Loss(text=fact.text, kind=kind, source_id=unit.id, kept=context.has(fact))
    for sentence in sentences(text) if may_bind(text) else ():
        if is_binding(sentence):
            key = (BINDING, " ".join(words(sentence)))
            yield key, Loss(text=sentence, kind=BINDING, source_id=unit.id, kept=context.says(sentence))
