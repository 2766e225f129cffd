"""How a share of the window is written: one decimal below 10 %, else an integer, never clamped. PURE."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal


def percent_text(share: float) -> str:
    """0.25 -> "25 %", 0.0942 -> "9.4 %", 1.07 -> "107 %"."""
    percent = Decimal(str(share)) * 100
    tenths = percent.quantize(Decimal("0.1"), ROUND_HALF_UP)
    if tenths < 10:
        return f"{tenths} %"
    return f"{percent.quantize(Decimal(1), ROUND_HALF_UP)} %"


def clamped(share: float) -> float:
    """The share as a drawing shows it, between 0 and 1."""
    return min(1.0, max(0.0, share))
