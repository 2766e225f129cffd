"""The shell around `decide`: claims a dialog, asks the provider, runs tools, records."""

from __future__ import annotations
