"""Every read, one file a question. A selector never writes."""

from __future__ import annotations
