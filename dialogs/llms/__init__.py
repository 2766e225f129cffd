"""Who is asked and how much it takes: providers and LLMs as rows, the catalogue, connecting a server, the guard."""

from __future__ import annotations
