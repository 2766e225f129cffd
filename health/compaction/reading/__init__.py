"""Reading texts: words, facts, subjects, rules, quotations. It decides nothing."""

from __future__ import annotations
