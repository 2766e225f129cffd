"""How long to wait before something is tried again: both providers and tools go by this. PURE; chance is handed in."""

from __future__ import annotations

# Doubled more often than this, every base is above every longest wait.
MOST_DOUBLINGS = 60


def doubled(*, failures: int, base: float, most: float) -> float:
    """The base in seconds, doubled for each earlier failure up to the longest wait."""
    return min(most, base * 2.0 ** min(failures - 1, MOST_DOUBLINGS))


def backoff(*, failures: int, base: float, most: float, wished: float | None, share: float = 1.0) -> float | None:
    """Seconds until the next try after so many failures, or None to give up.

    A share of the doubled base. A server's Retry-After is never undercut; one longer than the longest wait ends the
    tries.
    """
    wished = wished or 0.0
    if wished > most:
        return None
    return max(wished, share * doubled(failures=failures, base=base, most=most))
