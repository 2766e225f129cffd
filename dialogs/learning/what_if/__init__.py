"""What-if: stored dialogs replayed under other limits and chains, to compare them."""

from __future__ import annotations
