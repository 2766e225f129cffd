"""Why `up` cannot go on. The text is for a person, in one line, and says what to do."""

from __future__ import annotations


class CannotStart(Exception):
    """Something outside must change first."""


class GaveUp(Exception):
    """A child dies as fast as it is started."""
