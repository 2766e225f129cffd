"""Rules that a person wrote by hand, or took back, beside those that the ledger reads from messages. PURE.

A dialog stores them as JSON, oldest first, each text once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from health.compaction.reading.ledger_page import normal


@dataclass(frozen=True, kw_only=True)
class StandingRule:
    """`holds` False: what stands in an earlier message no longer counts, and no compaction carries it."""

    text: str
    holds: bool
    at: datetime

    @property
    def key(self) -> str:
        return normal(self.text)


def load(rows: Iterable[dict[str, Any]]) -> tuple[StandingRule, ...]:
    return tuple(
        StandingRule(text=row["text"], holds=row["holds"], at=datetime.fromisoformat(row["at"])) for row in rows
    )


def dump(rules: Iterable[StandingRule]) -> list[dict[str, Any]]:
    return [{"text": rule.text, "holds": rule.holds, "at": rule.at.isoformat()} for rule in rules]


def holding(rules: Iterable[StandingRule]) -> tuple[str, ...]:
    return tuple(rule.text for rule in rules if rule.holds)


def taken_back(rules: Iterable[StandingRule]) -> tuple[str, ...]:
    return tuple(rule.text for rule in rules if not rule.holds)


def having(rules: Iterable[StandingRule], rule: StandingRule) -> tuple[StandingRule, ...]:
    """The rules with this one as the newest, in place of an earlier one of the same text."""
    return (*without(rules, rule.text), rule)


def without(rules: Iterable[StandingRule], text: str) -> tuple[StandingRule, ...]:
    return tuple(rule for rule in rules if rule.key != normal(text))
