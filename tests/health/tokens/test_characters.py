"""Guessing tokens from characters: never far too low, whatever the script."""

from __future__ import annotations

import pytest

from health.tokens.counters import counter_for, rough

ENGLISH = "She asked whether the invoices of last spring had been paid, and nobody in the office could tell. "
CODE = "def total(items: list[Item]) -> int:\n    return sum(item.price * item.count for item in items)\n"
CHINESE = "请在周五之前把合同发给律师，并确认交付日期不会再次推迟。"
RUSSIAN = "Она спросила, оплачены ли счета за прошлую весну, и никто в конторе не знал. "
DATA = '{"id": "a-1093", "values": [1, 22, 333], "state": null}, '


@pytest.mark.parametrize("text", [ENGLISH, CODE, CHINESE, RUSSIAN, DATA], ids=["en", "code", "zh", "ru", "json"])
@pytest.mark.parametrize("model", ["gpt-4", "gpt-4o", "llama-3", "mistral-nemo"])
def test_a_guess_is_seldom_too_low_and_never_wild(text: str, model: str) -> None:
    true = counter_for(model).count([text * 20])[0]

    assert 0.85 * true <= rough(text * 20) <= 2.2 * true


def test_a_chinese_character_is_at_least_a_token() -> None:
    assert rough("中" * 310) >= 310


def test_nothing_is_nothing_and_anything_is_something() -> None:
    assert rough("") == 0
    assert [rough(text) for text in ("a", "\n", "é", "中", "\ud800")] == [1, 1, 1, 2, 1]
    assert rough("👩‍👩‍👧") >= 8
