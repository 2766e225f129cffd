"""What every client must be able to do, in words of our own: what a test wishes, and what the client made of it.

The clients themselves: `python_clients.py` and `node_clients.py`. Each is used as its own documentation says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True, kw_only=True)
class Wish:
    """`results` are what the tools of the client answer, by their names: it calls them until there is no call."""

    model: str
    messages: Sequence[Mapping[str, Any]]
    stream: bool = False
    results: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    # Leave as soon as this text has come.
    leave_at: str = ""


@dataclass(kw_only=True)
class Answer:
    """As the client gave it to its program. `statuses`: keys that only clients show that hide nothing."""

    text: str = ""
    thoughts: str = ""
    calls: list[str] = field(default_factory=list)
    finish: str = ""
    prompt_tokens: int | None = None
    statuses: list[str] = field(default_factory=list)
    # {"kind": the client's own class, "status", "code"}; status where the client tells it.
    error: dict[str, Any] | None = None


class Client(Protocol):
    def ask(self, wish: Wish) -> Answer: ...
