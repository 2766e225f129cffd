"""Providers: one file for each kind of service, with one contract. They do not use the database."""

from __future__ import annotations
