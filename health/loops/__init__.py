"""Whether an agent goes round in circles. PURE: what it said and called is handed in, and judged.

`patterns` says what was seen, `likeness` how much two answers are alike.
"""

from __future__ import annotations
