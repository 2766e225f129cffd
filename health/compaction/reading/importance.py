"""Importance: 0 to 1 from a fixed table of what a message is; it decides what leaves the sliding window.

Not relevance (likeness to the task) and not priority (set by the user). Each factor counts once for a message,
however often it occurs. What a tool says of its own success goes before the words of its result.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from health.compaction.terms.units import Kind, Role, Unit, tools_by_result

UI_TOOLS = frozenset({"elementsJson", "webElements"})
WEB_TOOL = "webElements"
# Tools of MCP servers are called by their server's name too: `browser__elementsJson`.
SERVER_MARK = "__"
BASE = 0.5

# A count or a share that is nothing: "0", "0.0 %"; not "0.5", "07", "0x80".
_ZERO = r"0{1,9}(?:[.,]0{1,9})?(?![a-z0-9_]|[.,]\d)"
_NO = r"(?:n/a\b|none\b(?! of)|(?:no|null|nil|false)\b(?! ?\w)|\[\]|\"\")"
_NO_CJK = r"(?:否|无|無|没有|沒有|零|なし|無し|ゼロ|いいえ)(?!\w)"
_CJK = r"[\u3040-\u30ff\u4e00-\u9fff]"
# Less than all: "40 %".
_SHARE = r"(?<![\d.,])\d{1,2}(?:[.,]\d{1,3})? ?[%％]"
_FAULTS = r"(?:errors?|exceptions?|failures?|failed)"
_COUNTED = (
    r"(?:\(s\)| (?:rates?|counts?|numbers?|totals?|ratios?|percentages?|found|seen|reported|logged|detected|raised)\b"
    r"| in (?:this|the|last|total) ?\w{0,12}| so far){0,2}"
)
_ERROR = re.compile(
    # "0 errors", "no exception", "errors: 0", "Any errors? No.": said, and denied. They come first, so that they are
    # stepped over.
    r"\b(?:0|no|zero|without(?: any)?) (?:\w{1,20} )?(?:errors?|exceptions?|failures?|failed)\b"
    # "Error: 0 bytes received" is one.
    rf"|\b(?!(?:error|exception|failure): 0 [a-z]){_FAULTS}\b{_COUNTED}"
    rf"[\"'*]{{0,3}} ?(?:[:=|：]|\b(?:is|was|were|are|of)\b) ?[\"']?(?:{_ZERO}|{_NO})"
    rf"|\b(?:errors|exceptions|failures|failed)\b[ \t]{{1,9}}{_ZERO}"
    rf"|\b{_FAULTS}\b[^.,;!?\n]{{0,40}}\? ?[\"*]{{0,2}}(?:no|none|nope|never|nothing|not (?:one|any))\b(?! ?\w)"
    r"|\b(?:not|never|\w{1,12}n['’]t) (?:\w{1,12} )?(?:failed|error)\b"
    r"|(?:没有?|沒有?|未|無|无|(?<!\d)0 ?[个個件]?)(?:出现|出現|发生|發生|发现|發現|遇到)?(?:任何)?"
    r"(?:错误|錯誤|失败|失敗|异常|エラー)"
    rf"|(?:错误|錯誤|失败|失敗|异常|例外|エラー){_CJK}{{0,4}}?[\"']? ?[:：=|]? ?[\"']?(?:{_ZERO}|{_NO_CJK})"
    rf"|(?:错误|錯誤|失败|失敗|异常|例外|エラー){_CJK}{{0,6}}[?？] ?(?:没|沒|无|無|否|ない|なし|いいえ)"
    r"|エラー(?:は|が|も)?(?:なし|無し|ありません|0件|(?:発生し|出|起き|見つかり|検出され)(?:てい)?(?:ません|ない|なか))"
    r"|(?P<hit>\b(?:errors?|exceptions?|traceback|failed|failures?|fatal|panic)\b"
    r"|エラー|例外|错误|錯誤|失败|失敗|异常)"
)
_NAMED_ERROR = re.compile(r"\b[A-Z]\w{0,60}(?:Error|Exception)\b")
_ERROR_HINTS = (
    "error",
    "exception",
    "traceback",
    "fail",
    "fatal",
    "panic",
    "エラー",
    "例外",
    "错误",
    "錯誤",
    "失",
    "异常",
)
# "haven't done", "80 % done", "Finished? No.", "once completed", 还没完成, 完了していません: said, and not so.
_DONE_WORDS = r"(?:done|completed?|finished)"
_DONE = re.compile(
    r"\b(?:not|never|cannot|unable|nothing|none|almost|nearly|partly|partially|hardly|barely"
    rf"|once|until|unless|if|when|\w{{1,12}}n['’]t)[ -](?:\w{{1,12}} ){{0,3}}{_DONE_WORDS}\b"
    rf"|\b(?:to|must|should|would|will|shall|can|could|may|might) be (?:\w{{1,12}} )?{_DONE_WORDS}\b"
    rf"|\bhalf[ -]{_DONE_WORDS}\b|\[ \][^\n]{{0,200}}"
    rf"|{_SHARE} (?:\w{{1,12}} ){{0,2}}{_DONE_WORDS}\b"
    rf"|\b{_DONE_WORDS}\b[\"'*]{{0,3}} ?[:=|：] ?[\"']?(?:{_ZERO}|{_NO}|not\b|{_SHARE})"
    rf"|\b{_DONE_WORDS}\b[^.,;:!?\n]{{0,60}}[?？](?! ?[\"*]{{0,2}}(?:yes|yep|yeah|it is)\b)"
    r"|(?:未|没有?|沒有?|不能?|无法|無法|尚待|待|几乎|幾乎|快要?|即将|即將|部分|差不多|如果|一旦|是否|能否|ほぼ)"
    r"(?:能|被)?(?:全部|完全)?(?:完成|完了)"
    r"|完[了成](?:を|は|が)?(?:して|できて|でき|し)?い?(?:ません|ない|なか)"
    r"|完[了成](?:了|しました|しています|です|でした)?[吗嗎么か]"
    r"|完[了成](?:[度率数數][は为為是]?(?: ?[:：=|])?|[は为為是]| ?[:：=|])"
    rf" ?[\"']?(?:{_NO_CJK}|{_NO}|{_ZERO}|{_SHARE})"
    rf"|(?P<hit>\b{_DONE_WORDS}\b|完成|完了)"
)
_PLAN = re.compile(r"\W{0,9}(?:the |my )?plan(?:ning)?\b|\W{0,9}(?:计划|計画|計劃|规划|プラン)")
_PLANNED = re.compile(r"\bplan(?:s|ned|ning)?\b")
_DONE_CALLS = frozenset({"done", "task_done", "finish", "complete", "attempt_completion"})
_THINKING_CALLS = frozenset({"think", "plan"})
# Enough of a message to tell what it is; an error stands at either end of a long result.
_EDGE_CHARS = 20_000


def mentions_error(text: str) -> bool:
    """True where an error, exception or failure is told; false where it is denied ("0 errors")."""
    low = text.lower()
    hinted = any(hint in low for hint in _ERROR_HINTS)
    return hinted and (_hits(_ERROR, low) or _NAMED_ERROR.search(text) is not None)


def bare_name(tool: str) -> str:
    """A tool's name without its server's."""
    return tool.rsplit(SERVER_MARK, 1)[-1]


def is_ui_tool(tool: str) -> bool:
    return bare_name(tool) in UI_TOOLS


def _hits(pattern: re.Pattern[str], text: str) -> bool:
    return any(match["hit"] for match in pattern.finditer(text))


def _edges(text: str) -> str:
    return text if len(text) <= 2 * _EDGE_CHARS else f"{text[:_EDGE_CHARS]}\n{text[-_EDGE_CHARS:]}"


@dataclass(frozen=True, slots=True)
class _Seen:
    """A message, the tool whose result it is (or ""), and its text at both ends."""

    unit: Unit
    tool: str
    text: str


def _is_error(seen: _Seen) -> bool:
    return mentions_error(seen.text) if seen.unit.failed is None else seen.unit.failed


def _is_done(seen: _Seen) -> bool:
    called = any(call.name in _DONE_CALLS for call in seen.unit.calls)
    return called or (seen.unit.role is Role.ASSISTANT and _hits(_DONE, seen.text.lower()))


def _is_planning(seen: _Seen) -> bool:
    said = (f"{call.name} {call.arguments}".lower() for call in seen.unit.calls if call.name in _THINKING_CALLS)
    thinks = any(_PLANNED.search(text) is not None for text in said)
    return thinks or (seen.unit.role is Role.ASSISTANT and _PLAN.match(seen.text.lower()) is not None)


def _is_screenshot(seen: _Seen) -> bool:
    return seen.unit.image_tokens > 0 or "screenshot" in seen.tool.lower()


def _can_be_fetched_again(seen: _Seen) -> bool:
    return is_ui_tool(seen.tool)


FACTORS: tuple[tuple[float, Callable[[_Seen], bool]], ...] = (
    (+0.3, _is_error),
    (+0.3, _is_done),
    (+0.2, _is_planning),
    (+0.1, _is_screenshot),
    (-0.1, _can_be_fetched_again),
)


def importance(unit: Unit, *, tool: str = "") -> float:
    """0 to 1. `tool` is the name of the tool whose result the unit is."""
    seen = _Seen(unit, tool, _edges(unit.content))
    score = BASE + sum(points for points, holds in FACTORS if holds(seen))
    return round(min(1.0, max(0.0, score)), 2)


def importances(units: Iterable[Unit]) -> dict[str, float]:
    """The importance of each unit by its id. What compaction wrote stands for many messages: the most important."""
    units = tuple(units)
    tools = tools_by_result(units)
    return {
        unit.id: 1.0 if unit.kind is Kind.SUMMARY else importance(unit, tool=tools.get(unit.id, "")) for unit in units
    }
