"""What was said: the branch, its courses, views and marks; search; whose dialog it is."""

from __future__ import annotations
