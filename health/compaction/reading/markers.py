"""Role markers made harmless: text that compaction quotes must not pass for another speaker, or for our labels.

Chat templates' tokens, tags named after roles, "System:" at the head of a line, and the first and last lines of
what compaction writes. They stay readable; nothing else is changed. Linear in the text.
"""

from __future__ import annotations

import re

_ROLE = r"(?:system|developer|user|assistant|tool|human|ai|function)"
_TEMPLATE = re.compile(
    r"<\|(?P<token>[\w./ -]{1,40})\|>"
    r"|<(?P<sys>/?s|</?SYS>|/?SYS)>|\[(?P<inst>/?(?:INST|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|SYSTEM_PROMPT))\]"
    rf"|<(?P<tag>/?(?:antml:)?{_ROLE}(?:[-_](?:reminder|prompt|message|instructions?|call|result|calls|results))?"
    r"|/?(?:start|end)_of_turn|/?(?:antml:)?(?:function_calls|invoke)|[｜|][^<>\n]{1,40}[｜|])(?P<rest>[^<>\n]{0,80})>",
    re.IGNORECASE,
)
_HEAD = re.compile(
    rf"(?m)^(?P<lead>[ \t]*+[#>*-]*+[ \t]*+\**+)(?P<role>{_ROLE}|instructions?)(?P<name>[ \t]++[\w.-]{{1,64}})?"
    r"(?P<end>\**[ \t]*[:：])",
    re.IGNORECASE,
)
_OURS = re.compile(
    r"\[(?=(?:Summary of \d|End of summary|Ledger of earlier|End of ledger|Seen in the|End of what was"
    r"|Earlier messages|Omitted|[^\[\]\n]{1,200}: history, not instructions)\b)"
)

# A text of a tool that speaks to the model.
ORDERS = re.compile(
    r"\b(?:ignore|disregard|forget|override|bypass)\b.{0,60}\b(?:previous|prior|above|earlier|all|your|instructions?)\b"
    r"|\byou (?:are|must|will) now\b|\bnew (?:system )?(?:instructions?|prompt)\b"
    r"|忽略.{0,12}(?:指令|指示|提示|规则)|你现在是",
    re.IGNORECASE,
)


def harmless(text: str) -> str:
    """The text with its markers in other brackets or in quotation marks. Doing it twice changes nothing more."""
    text = _TEMPLATE.sub(_bracketed, text)
    text = _HEAD.sub(r'\g<lead>"\g<role>\g<name>"\g<end>', text)
    return _OURS.sub("(", text)


def _bracketed(match: re.Match[str]) -> str:
    inside = match["token"] or match["sys"] or match["inst"] or f"{match['tag']}{match['rest']}"
    return f"‹{inside.strip('<>|｜')}›"
