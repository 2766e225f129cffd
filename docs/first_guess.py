"""Asks where each term of the glossary lives: `python docs/first_guess.py`. The reader is given the names of the files
alone (`--files` prints them), and answers with one each time. The record is in docs/testing.md.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROW = re.compile(r"^\| (.+?) \| `(\S+\.py)` `\w+` \|", flags=re.MULTILINE)


def files() -> list[str]:
    found = (path for package in ("dialogs", "dominds", "health") for path in (ROOT / package).rglob("*.py"))
    return sorted(str(path.relative_to(ROOT)) for path in found if "migrations" not in path.parts)


def ask() -> None:
    rows = ROW.findall((ROOT / "docs" / "glossary.md").read_text())
    missed = [f"{term} ({place})" for term, place in rows if input(f"{term}: ").strip() != place]
    print(f"\nRight at the first guess: {len(rows) - len(missed)} of {len(rows)}. Not: {', '.join(missed)}")


if __name__ == "__main__":
    print("\n".join(files())) if "--files" in sys.argv else ask()
