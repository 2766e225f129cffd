"""What a reading of values does wrong costs quality only: there is a result, nothing counts as outdated, it is told."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from cProfile import Profile
from typing import Any

import pytest

from health.compaction.reading.force import in_force
from health.compaction.reading.ledger import carry, extract
from health.compaction.terms.outcome import CompactionOutcome, Status
from health.compaction.terms.reasons import Reason, Why
from health.compaction.terms.units import Role, Unit
from health.services import compact_messages
from tests.health.compaction.builders import KIT
from tests.health.compaction.test_newest_value import ASIDES, said
from tests.health.compaction.test_read_once import nothing_remembered

READING = "health.compaction.reading."
OLD, NEW = "The chimney is swept on 3 June.", "The chimney is swept on 28 June now."
LIMIT = 400


def a_talk() -> list[dict[str, Any]]:
    asides = [ASIDES[at % 3] for at in range(30)]
    return said((OLD, "Noted."), *asides, ("Never sweep on Sundays.", "Noted."), (NEW, "Noted."), ("Next?", ""))[:-1]


def units_of(texts: Sequence[str]) -> tuple[Unit, ...]:
    return tuple(Unit(id=f"m{at}", role=Role.USER, content=text) for at, text in enumerate(texts))


def broken(*_: object, **__: object) -> Any:
    raise LookupError("a sentence without an end")


def compacted() -> CompactionOutcome:
    with nothing_remembered():
        return compact_messages(a_talk(), limit_tokens=LIMIT, embedder="none")


@pytest.mark.parametrize(
    "place",
    [
        *("values.Book.hear", "values.statements", "value_statements.own_sentences", "force.without_force"),
        *("ledger.kind_of_sentence", "ledger.own_sentences", "ledger.in_play"),
    ],
)
def test_where_what_was_stated_cannot_be_read_there_is_a_result_that_says_so(
    place: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(READING + place, broken)

    with caplog.at_level(logging.ERROR):
        outcome = compacted()

    assert outcome.status is Status.APPLIED, outcome.reason
    assert outcome.estimated_tokens_after <= LIMIT
    assert Reason(Why.UNREAD, {"name": "LookupError: a sentence without an end"}) in outcome.warnings
    assert any(record.exc_info and record.exc_info[0] is LookupError for record in caplog.records)


def test_where_all_can_be_read_nothing_is_said_of_it() -> None:
    assert [one for one in compacted().warnings if isinstance(one, Reason) and one.why is Why.UNREAD] == []


def test_nothing_is_outdated_where_values_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    assert in_force(units_of((OLD, NEW))).gone == {"m0": ((0, len(OLD)),)}

    monkeypatch.setattr(READING + "values.Book.hear", broken)

    with nothing_remembered():
        assert in_force(units_of((OLD, NEW))).gone == {}


def test_an_earlier_ledger_is_carried_on_without_what_was_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = ("Never sweep on Sundays.", "Always mail the neighbours first.")
    ledger = carry(extract(units_of(rules)), standing=(), budget_tokens=200, kit=KIT)
    assert ledger

    monkeypatch.setattr(READING + "ledger.kind_of_sentence", broken)

    with nothing_remembered():
        assert [entry.text for entry in extract([ledger, *units_of([OLD])]).stated] == [*rules]
        assert [entry.text for entry in extract([ledger], taken_back=rules[:1]).stated] == [*rules[1:]]


# However hostile a text is, it is read in steps in proportion to its length


def calls(read: Callable[[], object]) -> int:
    """How often functions were called, in C too: no clock, which other processes move."""
    counting = Profile()
    with nothing_remembered():
        counting.runcall(read)
    return sum(function.callcount for function in counting.getstats())


def steps(text: str, in_messages_of: int) -> int:
    units = units_of([text[at : at + in_messages_of] for at in range(0, len(text), in_messages_of)])
    return calls(lambda: (in_force(units), list(extract(units))))


def repeated(piece: Callable[[int], str]) -> Callable[[int], str]:
    """As much of the piece, told for 0, 1, 2 and so on, as has so many characters."""

    def text(chars: int) -> str:
        return "".join(piece(at) for at in range(chars // len(piece(0)) + 1))[:chars]

    return text


HOSTILE = {
    "one word": repeated(lambda at: "crate "),
    "one Chinese word": repeated(lambda at: "箱子"),
    "one sentence": repeated(lambda at: "The crate is at 9:15. "),
    "sentences with values": repeated(lambda at: f"Crate {at} costs {at % 97} euros. "),
    "Chinese sentences with values": repeated(lambda at: f"箱子{at}要{at % 97}元。"),
    "changes": repeated(lambda at: f"Nora moves crate {at} from {at % 97} to {at % 89} euros, not {at}. "),
    "withdrawals": repeated(lambda at: f"Forget what I said about crate {at % 50}. "),
    "rules": repeated(lambda at: f"Never open crate {at} before {at % 24}:15. "),
    "one line": repeated(lambda at: "the crate at 9:15 is not 40 euros but, "),
    "names": repeated(lambda at: f"Crate Nora{at} Ben{at} "),
}
# More than anybody types at once, which is not heard; as much as is heard of one message; a line.
MESSAGES = (1_000_000, 10_000, 200)


@pytest.mark.parametrize("in_messages_of", MESSAGES)
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_twice_the_text_takes_twice_the_steps(text: Callable[[int], str], in_messages_of: int) -> None:
    chars = 20_000

    assert steps(text(2 * chars), in_messages_of) < 2.6 * steps(text(chars), in_messages_of) + 1_000
