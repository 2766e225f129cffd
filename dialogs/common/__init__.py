"""Helpers that import no other package: errors, texts, threads, secrets, Redis, hints to workers and browsers."""

from __future__ import annotations
