"""What the services refuse, in words for people. Providers have errors of their own (`providers/base.py`)."""

from __future__ import annotations


class DialogError(ValueError):
    """The dialog cannot do that now. `str(error)` is a translated sentence."""


class InvalidMessage(DialogError):
    """The text cannot be stored as a message."""


class DialogBusy(DialogError):
    """A turn is running; stop it or wait."""
