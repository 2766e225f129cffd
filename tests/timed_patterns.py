"""Every compiled pattern of ours against long and adversarial texts, timed; run by `test_patterns` as a program of its
own, because nothing in the same process could end a pattern that takes hours.

A line on standard output before each pattern, and one after it with the text that took longest.
"""

from __future__ import annotations

import ast
import importlib
import json
import os
import pkgutil
import re
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

PACKAGES = ("dominds", "dialogs", "health")
CHARS = 200_000
# So short a time for a tenth of the text is no matter for all of it, even where it grows with the square.
SHORT = 0.015
# What is repeated: blanks, tabs, stars, ends of lines, digits, brackets, quotation marks, letters, CJK, and mixtures.
PIECES = (" ", "\t", "*", "\n", "1", "[", '"', "“", "中", "a", "_", "A b-", "\n- [ ", " \t*\n#>1,中“(a: ")
# At which a pattern that has come so far fails.
END = "\x00"
# Only ever matched from the beginning of a line or a text, or with all of it: nobody searches with them.
FROM_THE_START = (
    "health.compaction.reading.quoting.re.compile",
    "dialogs.driver.repetition._BLOCK",
    *("dialogs.driver.repetition._DOTS", "dialogs.driver.repetition._ONLY_DOTS"),
    *("dialogs.admin.mcp_server.HEADER", "dialogs.admin.mcp_server.VARIABLE"),
    *("health.compaction.reading.code_languages._PRAGMA", "health.compaction.reading.code_languages._TELLS"),
    *("health.compaction.reading.facts._FILE_ENDING", "health.compaction.reading.ledger_patterns._OVER"),
    *(f"health.compaction.reading.messages.{name}" for name in ("_CODE_LINE", "_LOG_LINE", "_PLAN_LINE", "_PLAN_REF")),
    *("health.compaction.choosing.sources._OUTPUT", "health.compaction.reading.quoting._UNUSUAL"),
    "health.compaction.reading.sentences._HEADING",
    *(
        f"health.compaction.reading.quoting.{name}"
        for name in (
            "_FENCE",
            "_FORWARDED",
            "_HEADER",
            "_IN_QUOTES",
            "_OPENED",
            "_QUOTED",
            "_ROLE",
            "_RULED",
            "_TRIPLE",
        )
    ),
    "health.compaction.choosing.summaries._REFUSAL",
)
# Searched for in texts of so many characters at most: why.
BOUNDED = {
    # Of an answer its last characters are looked at.
    "dialogs.driver.watch._SENTENCE": 8,
    # A name that is longer than `_LONGEST_NAME` is none.
    "health.compaction.reading.facts._NAMING": 200,
}


def patterns() -> dict[str, re.Pattern[Any]]:
    """By where it stands; each once."""
    found: dict[re.Pattern[Any], str] = {}
    for module in sorted(modules(), key=lambda one: one.__name__):
        for name, value in vars(module).items():
            for pattern in _in(value):
                found.setdefault(pattern, f"{module.__name__}.{name}")
    for where, pattern in written_out():
        found.setdefault(pattern, where)
    return {f"{name} {pattern.pattern!r}": pattern for pattern, name in found.items()}


def modules() -> Iterator[ModuleType]:
    for package in map(importlib.import_module, PACKAGES):
        for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            # Where processes begin: imported, they would.
            if not info.name.endswith(("asgi", "__main__", "dominds.web")):
                yield importlib.import_module(info.name)


def written_out() -> Iterator[tuple[str, re.Pattern[Any]]]:
    """Patterns inside functions, as in `re.sub("a", "b", text)`: nothing holds them that could be found. Where one is
    put together, what is known only when it runs stands as a word."""
    for module in sorted(modules(), key=lambda one: one.__name__):
        for function in ast.walk(ast.parse(Path(str(module.__file__)).read_text())):
            for call in ast.walk(function) if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) else ():
                match call:
                    case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=how), args=[pattern, *_]):
                        if how in CALLS and (written := _written(pattern)) is not None:
                            yield f"{module.__name__}.re.{how}", re.compile(written, _flags(call))


CALLS = frozenset({"compile", "sub", "subn", "search", "match", "fullmatch", "findall", "finditer", "split"})


def _written(pattern: ast.expr) -> Any:
    match pattern:
        case ast.Constant(value=str() | bytes() as written):
            return written
        case ast.JoinedStr(values=values):
            return "".join(str(part.value) if isinstance(part, ast.Constant) else "word" for part in values)
    return None


def _flags(call: ast.Call) -> int:
    named = [ast.unparse(key.value) for key in call.keywords if key.arg == "flags"]
    told = named or [text for text in map(ast.unparse, call.args[1:]) if text.startswith("re.")]
    return sum(getattr(re, name.strip().removeprefix("re.")) for text in told for name in text.split("|"))


def _in(value: Any) -> Iterator[re.Pattern[Any]]:
    """The pattern itself, or those in a collection."""
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, Mapping):
        yield from _each((*value.keys(), *value.values()))
    elif isinstance(value, tuple | list | set | frozenset):
        yield from _each(value)


def _each(values: Iterable[Any]) -> Iterator[re.Pattern[Any]]:
    for value in values:
        if isinstance(value, re.Pattern):
            yield value
        elif isinstance(value, tuple):
            yield from _each(value)


def seconds(name: str, pattern: re.Pattern[Any], piece: str, most: int) -> float:
    """Of the processor, for a text of so many characters; where a tenth of it is quick, the most that all can take."""
    first = _once(name, pattern, piece * (most // 10 // len(piece)) + END)
    return first * 100 if first < SHORT else _once(name, pattern, piece * (most // len(piece)) + END)


def _once(name: str, pattern: re.Pattern[Any], text: str) -> float:
    """All that is done with a pattern: to find all, and to fit from the start."""
    said: Any = text if isinstance(pattern.pattern, str) else text.encode()
    begun = time.process_time()
    if name.split()[0] not in FROM_THE_START and not name.split()[0].endswith((".re.match", ".re.fullmatch")):
        deque(pattern.finditer(said), maxlen=0)
    pattern.match(said)
    pattern.fullmatch(said)
    return time.process_time() - begun


def main(after: str) -> None:
    import django

    django.setup()
    for name, pattern in sorted(patterns().items()):
        if name > after:
            _tell(name, None, 0)
            most = BOUNDED.get(name.split()[0], CHARS)
            longest = max((seconds(name, pattern, piece, most), piece) for piece in PIECES)
            _tell(name, longest[1], longest[0])


def _tell(name: str, text: str | None, seconds: float) -> None:
    sys.stdout.write(json.dumps([name, text, seconds]) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dominds.settings")
    main(sys.argv[1] if len(sys.argv) > 1 else "")
