"""What the doctor found out: one line, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    OK = "ok"
    # Worth knowing; everything works.
    NOTE = "note"
    WRONG = "wrong"


@dataclass(frozen=True, kw_only=True)
class Finding:
    name: str
    state: State
    text: str
    fix: str = ""


def ok(name: str, text: str) -> Finding:
    return Finding(name=name, state=State.OK, text=text)


def note(name: str, text: str, *, fix: str = "") -> Finding:
    return Finding(name=name, state=State.NOTE, text=text, fix=fix)


def wrong(name: str, text: str, *, fix: str) -> Finding:
    return Finding(name=name, state=State.WRONG, text=text, fix=fix)
