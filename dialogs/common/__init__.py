"""What needs none of the others: errors, texts, threads, secrets, Redis, how workers and browsers are told."""

from __future__ import annotations
