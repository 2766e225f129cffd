"""What a message's text is: code, a log, a reference to the plan, or just words. Who wrote it, its text cannot say.

Judged by the first part of a text and by whole lines, so that ten megabytes cost no more than eight kilobytes.
"""

from __future__ import annotations

import re

from health.compaction.reading.text import of_text
from health.compaction.terms.units import Kind, Role

_SAMPLE = 8_000
_MOSTLY = 0.5
_FEWEST_LOG_LINES = 3

_FENCED = re.compile(r"^(```|~~~)[^\n]*\n.*?^\1", re.MULTILINE | re.DOTALL)
_PLAN_LINE = re.compile(r"\s*(?:[-*]|\d+[.)])\s+\[[ xX~-]\]\s")
_PLAN_REF = re.compile(
    r"\s*+#*+\s*+(?:plan-ref-\d+|(?:the )?(?:plan|to-?do list|taskdoc)\b\s*+:?\s*+$|(?:计划|待办)[：:]?\s*+$)", re.I
)
_LOG_LINE = re.compile(
    r"\s*[\[(]?(?:\d{4}[-/]\d\d[-/]\d\d[ T]\d\d:|\d\d:\d\d:\d\d|[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:"
    r"|(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL|CRITICAL)\b)"
)
_CODE_LINE = re.compile(
    r"\s*(?:\d+[\t:|]\s*)?(?:def |class |import |from \S+ import |return\b|async |await |@\w|#include|package |func "
    r"|fn |let |const |var |public |private |static |if\b.*[:{]$|for\b.*[:{]$|while\b.*[:{]$|else\b|\}|//|/\*|\*/|#!)"
    r"|.*[;{}]\s*$"
)


@of_text
def kind_of(text: str, role: Role) -> Kind:
    """The kind of one message that somebody said: never one of `WRITTEN`."""
    sample = text[:_SAMPLE]
    if role in (Role.SYSTEM, Role.DEVELOPER) or not sample.strip():
        return Kind.MESSAGE
    lines = [line for line in sample.splitlines() if line.strip()]
    if _PLAN_REF.match(lines[0]) or ("[" in sample and _share(_PLAN_LINE, lines) >= _MOSTLY):
        return Kind.PLAN_REF
    if len(lines) >= _FEWEST_LOG_LINES and _share(_LOG_LINE, lines) >= _MOSTLY:
        return Kind.LOG
    if _is_code(sample, lines, role):
        return Kind.CODE
    return Kind.OTHER if role is Role.TOOL else Kind.MESSAGE


def _is_code(text: str, lines: list[str], role: Role) -> bool:
    """Mostly in fences; or, from a tool, which fences nothing, mostly lines that look like code."""
    fenced = _FENCED.finditer(text) if "```" in text or "~~~" in text else None
    if fenced and sum(len(block.group()) for block in fenced) >= _MOSTLY * len(text):
        return True
    return role is Role.TOOL and not text.lstrip().startswith(("{", "[")) and _share(_CODE_LINE, lines) >= _MOSTLY


def _share(pattern: re.Pattern[str], lines: list[str]) -> float:
    return sum(1 for line in lines if pattern.match(line)) / len(lines)
