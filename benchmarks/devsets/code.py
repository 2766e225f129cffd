"""Code: an agent that really runs commands in a repository with a planted fault, and is cut off before the fix."""

from __future__ import annotations

from benchmarks.devsets.vendored import vendored

WRITERS = (vendored,)
