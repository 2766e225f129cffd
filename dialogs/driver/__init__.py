"""The driver: claims a dialog, performs what `decide` says, calls the provider, runs tools, records all of it."""

from __future__ import annotations
