"""What the critic may change at all."""

from __future__ import annotations

from typing import Any

import pytest

from dialogs.learning.writes import NotProposable, check_change


@pytest.mark.parametrize(("kind", "change"), [("limit", {"limit": 6200}), ("chain", {"chain": ["truncate"]})])
def test_a_limit_and_an_order_can_be_proposed(kind: str, change: dict[str, Any]) -> None:
    check_change(kind, change)


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("limit", {"warning_threshold": 0.9}),
        ("limit", {"limit": 6200, "warning_threshold": 0.9}),
        ("chain", {"limit": 6200}),
        ("threshold", {"warning_threshold": 0.8}),
        ("severe", {"severe_share": 0.95}),
        ("limit", {}),
        ("limit", {"limit": True}),
        ("limit", {"limit": -1}),
        ("limit", {"limit": "6200"}),
        ("chain", {"chain": []}),
        ("chain", {"chain": "truncate"}),
    ],
)
def test_the_guards_80_90_and_100_percent_and_all_else_cannot(kind: str, change: dict[str, Any]) -> None:
    with pytest.raises(NotProposable, match="cannot be proposed"):
        check_change(kind, change)
