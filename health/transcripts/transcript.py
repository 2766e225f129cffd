"""What every reader of chats returns, and the one error that it raises."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


class NotATranscript(ValueError):
    """The file holds no chat that can be read. The text says why, with the line where there is one."""


@dataclass(frozen=True, kw_only=True)
class Transcript:
    """A chat: its messages, the tool schemas sent with it, what form it had, and what was left out."""

    messages: list[dict[str, Any]]
    form: str
    tools: tuple[dict[str, Any], ...] = ()
    notes: tuple[str, ...] = ()


def told(number: int, what: str) -> list[str]:
    """A note about what was left out, or none. `what` holds its plural as in "message{s} of another branch"."""
    return [f"{number} {what.format(s='s' * (number > 1))} left out."] if number else []
