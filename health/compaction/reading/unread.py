"""What cannot be read counts as having said nothing: a compaction loses quality by it, never its result."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

logger = logging.getLogger(__name__)

T = TypeVar("T")


def read_or(read: Callable[[], T], nothing: Callable[[str], T]) -> T:
    """What `read` finds. Where it raises, `nothing` is made of the error's name; the log has the traceback."""
    try:
        return read()
    except Exception as error:
        logger.exception("Some of what was stated could not be read, and counts as still in force.")
        return nothing(f"{type(error).__name__}: {error}")
