"""What must stay and in which order: pairs, cuts, protected messages, the floor, the ledger's place."""

from __future__ import annotations
