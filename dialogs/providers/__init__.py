"""One file a kind of service behind one contract. They know no database."""

from __future__ import annotations
