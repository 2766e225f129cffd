"""What is switched off, and what is learned, stands where the tables say."""

from __future__ import annotations

from importlib import import_module

import pytest

from benchmarks.ablation import PARTS, kept, means, without
from benchmarks.learn_shares import NUMBERS, Number, tried
from tests.benchmarks.test_knowledge import greenhouse, moments_of

NAMES = sorted({name for off in PARTS.values() for name in off})


def stands(name: str) -> object:
    module, _, own = name.rpartition(".")
    return getattr(import_module(module), own)


@pytest.mark.parametrize("part", PARTS)
def test_a_part_is_off_only_while_it_is_measured(part: str) -> None:
    before = [stands(name) for name in PARTS[part]]
    with without(PARTS[part]):
        assert [stands(name) for name in PARTS[part]] == list(PARTS[part].values())
    assert [stands(name) for name in PARTS[part]] == before


@pytest.mark.parametrize("part", PARTS)
def test_without_a_part_a_conversation_is_still_compacted(part: str) -> None:
    assert means(kept(moments_of(greenhouse())[:1], [], ["25"], PARTS[part]))


def test_what_fails_from_within_is_no_measurement() -> None:
    with pytest.raises(RuntimeError, match="It failed: ZeroDivisionError"):
        list(kept(moments_of(greenhouse())[:1], [], ["25"], {"health.compaction.choosing.worth.PRIOR": {}}))


def test_no_more_than_twenty_numbers_are_learned_and_each_has_its_place() -> None:
    assert len(NUMBERS) <= 20
    assert all(number.today > 0 and number.set_on for number in NUMBERS)


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: number.name)
def test_a_number_is_tried_smaller_and_larger(number: Number) -> None:
    smaller, larger = tried(number)
    assert smaller < number.today < larger <= number.most
