"""What a dialog file says of the client that drives the dialog. Its key stays where it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class ClientEntry:
    """What its newest request asked for, beside its messages."""

    model: str
    instructions: str
    tools: tuple[dict[str, Any], ...]
    options: dict[str, Any]
    max_output_tokens: int | None
    offers_recall: bool
    chat: str
