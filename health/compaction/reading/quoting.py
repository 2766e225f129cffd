"""What a person says in their own voice: their message without quotations, pastes, code and logs.

Somebody else's orders inside a user's message are not the user's. When in doubt, text is held for a paste:
a rule that is missed still stands in the archive, while one that is slipped in would be obeyed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from health.compaction.reading.text import CJK, Passage, of_text, one_of, passages

# A person does not type more; what lies between is a paste. In characters, at each end of a message.
MOST_TYPED = 50_000
_LONGEST = 1_000
_MARKS = ("\n", ". ", "。")

_QUOTED = re.compile(
    r"\s*(?:>|[\[(]?(?:\d{4}[-/]\d\d[-/]\d\d[ T]\d\d:|\d\d:\d\d:\d\d|(?:TRACE|DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL)\b)"
    r"|\$ |at [\w$.]+\(|File \"|[{}\[\]]|\"[\w -]{1,60}\":|[|+]-*[|+ ])"
)
_ROLE = re.compile(
    r"\W{0,6}(?:system|developer|assistant|user|human|ai|tool|系统|助手|用户)\W{0,3}[:：]", re.IGNORECASE
)
_HEADER = re.compile(
    r"\s*\**(?:from|to|cc|subject|sent|date|reply-to|发件人|收件人|主题|抄送|发送时间)\**\s?[:：]", re.IGNORECASE
)
_FORWARDED = re.compile(
    r"\s*(?:-{2,}\s?(?:original|forwarded) message|begin forwarded message|on .{4,120} wrote:\s*$"
    r"|-{2,}\s?(?:原始邮件|转发的?邮件))",
    re.IGNORECASE,
)
_PASTE = (
    r"(?:e-?mail|mail|message|logs?|output|page|website|article|document|docs|text|report|transcript|letter|reply"
    r"|response|review|error|content|prompt|readme|file|ticket|issue|post|comment|chat|note|result|trace(?:back)?|diff"
    r"|code|snippet)"
)
_ANNOUNCED = re.compile(
    r"(?:\b(?:here(?:'s| is| are)|below|following|this is|these are|see|look at|pasted?|quote|(?:i|we) (?:just )?(?:got"
    rf"|received|found))\b.{{0,80}}\b{_PASTE}\b.{{0,60}}|\b(?:says?|said|wrote|writes|reads|replied|answered|sent)\b.{{0,40}}"
    r"|(?:以下|下面|这)[是为]?.{0,20}(?:邮件|日志|输出|网页|文章|内容|文档|报错|消息|回复|信|原文).{0,10}"
    r"|(?:说|写道|写着|回复|发来).{0,8})[:：]\s*$",
    re.IGNORECASE,
)
_OF_RULES = re.compile(
    r"\b(?:rules?|requirements?|constraints?|guidelines?|conventions?|preferences?|goals?|must|never|always|do not"
    r"|don't|want|need)\b|要求|规则|约定|必须|不要",
    re.IGNORECASE,
)
_RULED = re.compile(r"\s*(?:-{3,}|={3,}|\*{3,}|_{3,})\s*$")
_TRIPLE = re.compile(r"\s*(?:\"{3}|'{3})")
_FENCE = re.compile(r"\s*(?:```|~~~)")
_OPENED = re.compile(r"\s*<([A-Za-z][\w-]{0,40})(?:\s[^<>]{0,200})?>")
# What many clients put before each message: who writes, when, or how urgent it is. Not what stands before a log's line,
# nor before what a model said.
_LABEL = re.compile(r"\s{0,4}\[[^\[\]{}\"'\n]{2,80}\][:：]?\s{0,4}(?=[^\W\d_])")
_OF_OTHERS = re.compile(
    r"\d\d:\d\d:\d\d|\b(?:trace|debug|info|warn(?:ing)?|error|fatal|system|developer|assistant|tool|ai)\b",
    re.IGNORECASE,
)
# Who says a line: "Greta: on my way", "[2 May] Greta: on my way", 小艾：在路上. Of a thing often a number is told.
_SPEAKER = re.compile(
    r"(?:\[[^\[\]\n]{1,40}\] ?)?([^\W\d_][\w.'’-]{0,24}(?: [^\W\d_][\w.'’-]{0,24}){0,2})(?::(?=[\s"
    rf"{CJK}])|：)[ \t]*+(?P<number>[\d$€£¥]?)"
)
# "Thanks Ben, that was it" says nothing of Ben.
_TO_SOMEBODY = re.compile(
    r"(?:thanks|thank you|thx|ty|cheers|hi|hey|hello|morning)(?: a lot| so much)?,? ([^\W\d_][\w'’-]{0,30})"
    r"(?:[,.!]+ *|$)",
    re.IGNORECASE,
)
# A line that is another's, or may open what is: one quick look, as most lines are neither.
_UNUSUAL = re.compile(
    "|".join(pattern.pattern for pattern in (_QUOTED, _TRIPLE, _FENCE, _OPENED))
    + f"|(?i:{'|'.join(pattern.pattern for pattern in (_ROLE, _HEADER, _FORWARDED))})"
    + r"|(?:[^:：]*+[:：])++\s*$"
)
_TOLD_BY_OTHERS = re.compile(
    r"\b(?:(?<!i )(?:says?|said|wrote|writes|reads|replied|told (?:me|us))|according to|claims?|asked me to)\b"
    r"|(?:说|写道|写着|要求我)[：:，,“\"]|据说"
)
# A quick look, in lower case.
TELLING = re.compile(
    one_of(("say", "said", "wr", "read", "repl", "told", "accord", "claim", "asked", "说", "写", "要求我"))
)
_QUOTES = ('"', "“", "「", "『", "'")
_BULLET = re.compile(r"(?:[-*•]|\d{1,3}[.)、]|[（(]\d{1,2}[)）])\s*")
_IN_QUOTES = re.compile(r"[\"“「『'].*[\"”」』'][.。!！]?", re.DOTALL)


@of_text
def own_sentences(text: str) -> tuple[str, ...]:
    """The sentences that the writer of a message answers for, verbatim slices; a list goes with its heading."""
    return tuple([sentence for sentence in sentences(own(text)) if not _is_anothers(sentence)])


def own(text: str) -> str:
    """The text with every line emptied that is not the writer's own."""
    text = _typed(text)
    if not any(map(_UNUSUAL.match, text.split("\n"))):
        return text
    return "\n".join(line if mine else "" for mine, line in _lines(text))


def sentences(text: str) -> list[str]:
    """All sentences outside code, without their bullets; "Never do this:" is one with the list below it."""
    found: list[str] = []
    pieces = [passage for passage in passages(text) if not passage.code]
    at = 0
    while at < len(pieces):
        last, whole = at, pieces[at].text
        if whole.endswith((":", "：")):
            last = _end_of_list(text, pieces, at)
            whole = text[pieces[at].start : pieces[last].end]
        found.append(whole[_bullet(whole) :])
        at = last + 1
    # Two letters say nothing, two characters of Chinese a day.
    return [sentence for sentence in found if len(sentence) <= _LONGEST and len(sentence.encode()) > 2]


def _end_of_list(text: str, pieces: list[Passage], head: int) -> int:
    """The last piece of the list that a heading with a colon opens; the heading itself where there is none."""
    last = head
    while last + 1 < len(pieces) and _goes_on(text, pieces[last], pieces[last + 1]):
        last += 1
    return last


def _goes_on(text: str, before: Passage, piece: Passage) -> bool:
    gap = text[before.end : piece.start]
    return "\n" not in gap or (gap.count("\n") == 1 and bool(_BULLET.match(piece.text)))


def _bullet(text: str) -> int:
    match = _BULLET.match(text)
    return match.end() if match else 0


def _is_anothers(sentence: str) -> bool:
    low = sentence.lower()
    if TELLING.search(low) and _TOLD_BY_OTHERS.search(low):
        return True
    return sentence.startswith(_QUOTES) and bool(_IN_QUOTES.fullmatch(sentence))


def _typed(text: str) -> str:
    """A long message's beginning and end, in whole sentences."""
    if len(text) <= 2 * MOST_TYPED:
        return text
    head, tail = text[:MOST_TYPED], text[-MOST_TYPED:]
    begun = max(head.rfind(mark) for mark in _MARKS) + 1
    cut = min((at for mark in _MARKS if (at := tail.find(mark)) >= 0), default=MOST_TYPED - 1)
    return f"{head[:begun]}\n\n{tail[cut + 1 :]}"


def _lines(text: str) -> Iterator[tuple[bool, str]]:
    """Every line, and whether it is the writer's own. A paste ends at its closing mark, or never."""
    closing: re.Pattern[str] | None = None
    announced, headers = False, 0
    labelled = label_of(text)
    for at, line in enumerate(text.split("\n")):
        if closing is not None:
            yield False, line
            closing = None if closing.match(line) else closing
            continue
        headers = headers + 1 if _HEADER.match(line) else 0
        closing = _closing(line, pasting=(announced and bool(line.strip())) or headers > 1)
        said = line[labelled:] if at == 0 else line
        yield closing is None and not _QUOTED.match(said) and not _ROLE.match(said), line
        announced = _announces(line) or (announced and not line.strip())


@of_text
def label_of(text: str) -> int:
    """Where a message begins behind its label. Of several lines that begin so, none is known for the writer's."""
    first, *others = text.split("\n")
    label = _LABEL.match(first)
    if label is None or _OF_OTHERS.search(label[0]) or any(line.lstrip().startswith("[") for line in others):
        return 0
    return label.end()


def speakers(texts: Sequence[str]) -> frozenset[str]:
    """Several names, each before lines of more than one of the texts, and together of most: people who talk."""
    said = [labels(text) for text in texts]
    times = Counter(name for names in said for name in set(names))
    known = frozenset(name for name, number in times.items() if number > 1)
    of_most = 2 * sum(not known.isdisjoint(names) for names in said) > len(texts)
    return known if len(known) > 1 and of_most else frozenset()


def speaking_in(text: str, speaking: frozenset[str]) -> frozenset[str]:
    """Who of these speaks in a message, or of a talk that stands in it alone."""
    said = labels(text)
    is_talk = len(said) > len(set(said)) + 1
    return speaking.intersection(said) or (speakers([*filter(str.strip, text.split("\n"))]) if is_talk else frozenset())


@of_text
def labels(text: str) -> tuple[str, ...]:
    """What stands before lines as a speaker's name would."""
    hits = filter(None, map(_SPEAKER.match, text.split("\n"))) if ":" in text or "：" in text else ()
    return tuple([hit[1] for hit in hits if not hit["number"]])


def spoken_from(sentence: str, speaking: Collection[str], names: Collection[str]) -> tuple[int, str]:
    """Where a sentence begins behind who says it and whom it thanks or greets, and who says it, if it tells."""
    begins, speaker = 0, ""
    if speaking and (hit := _SPEAKER.match(sentence)) and hit[1] in speaking:
        begins, speaker = hit.start("number"), hit[1]
    hit = _TO_SOMEBODY.match(sentence, begins)
    return (hit.end() if hit and hit[1].lower() in names else begins), speaker


def _closing(line: str, *, pasting: bool) -> re.Pattern[str] | None:
    """What ends the paste that this line opens; None if it opens none."""
    if _FENCE.match(line):
        return _FENCE
    if _TRIPLE.match(line):
        return _TRIPLE
    if opened := _OPENED.match(line):
        ending = f"</{opened[1]}>"
        return None if ending in line else re.compile(rf".*{re.escape(ending)}")
    return _RULED if pasting or _FORWARDED.match(line) else None


def _announces(line: str) -> bool:
    end = line[-300:].rstrip()
    return end.endswith((":", "：")) and bool(_ANNOUNCED.search(end)) and not _OF_RULES.search(end)
