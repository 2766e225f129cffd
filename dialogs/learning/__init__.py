"""What the critic is told of dialogs, in numbers, and when it looks. It never reads a word, and changes nothing."""

from __future__ import annotations
