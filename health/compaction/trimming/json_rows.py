"""Results of tools as the model reads them in few tokens: one row of `key=value` for each object of JSON.

Braces, quotes and commas of JSON are a third of its tokens and say nothing. No value is altered: numbers stay as they
were written, a text of several lines stands below its key. NUL and half a character pair, which no database or no
provider takes, stay the escapes that they were. What is no JSON stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from health.compaction.reading.text import of_text
from health.compaction.trimming.payload_json import looks_like_json, parse, written

# A deeper nest is written as JSON on one line.
DEEPEST = 12
# Rows of no more characters stand on one line.
ONE_LINE = 320
_ONLY_ESCAPED = re.compile("[\0\ud800-\udfff]")


@of_text
def in_rows(text: str) -> str:
    """The text with each JSON value that fills it, or a whole line of it, in rows."""
    return _in_rows(text)


def _in_rows(text: str) -> str:
    if not looks_like_json(text):
        return _lines_in_rows(text) if "{" in text and "\n" in text else text
    try:
        return _joined(list(_rows(parse(text), 0)))
    except (ValueError, RecursionError):
        return _lines_in_rows(text) if "\n" in text else text


def _joined(rows: list[str]) -> str:
    """Each row a line; all on one where they are short together."""
    line = "; ".join(rows).replace(":; ", ": ")
    text = line if len(line) <= ONE_LINE and "\n" not in line else "\n".join(rows)
    return _ONLY_ESCAPED.sub(lambda sign: f"\\u{ord(sign[0]):04x}", text)


def _lines_in_rows(text: str) -> str:
    """JSON lines: a row for each line that is an object."""
    return "\n".join(
        _in_rows(line) if line.lstrip()[:1] == "{" and looks_like_json(line) else line for line in text.split("\n")
    )


def _rows(value: Any, depth: int) -> Iterator[str]:
    """In the order of the original: a row of what stands in this value itself ends where another value is nested."""
    if depth > DEEPEST:
        yield written(value)
    elif isinstance(value, dict):
        yield from _rows_of_object(value, depth)
    elif isinstance(value, list):
        for one in value:
            yield from _rows(one, depth + 1)
    else:
        yield _value_text(value)


def _rows_of_object(value: dict[str, Any], depth: int) -> Iterator[str]:
    row: list[str] = []
    for key, one in value.items():
        if _is_short(one):
            row.append(f"{key}={_value_text(one)}")
            continue
        yield " ".join([*row, f"{key}:"])
        row = []
        yield from [one] if isinstance(one, str) else _rows(one, depth + 1)
    if row:
        yield " ".join(row)


def _is_short(value: Any) -> bool:
    """Whether it stands in the row of its object."""
    if isinstance(value, dict):
        return not value
    if isinstance(value, list):
        return all(not isinstance(one, dict | list) and "\n" not in _value_text(one) for one in value)
    return not isinstance(value, str) or "\n" not in value


def _value_text(value: Any) -> str:
    if isinstance(value, list) and value:
        return ", ".join(map(_value_text, value))
    return value if isinstance(value, str) and type(value) is str else written(value).strip('"')
