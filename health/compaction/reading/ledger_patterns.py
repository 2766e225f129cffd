"""Words by which people bind, decide, prefer, aim and set dates. English and Chinese; no sentence is understood.

English phrases are looked up by their first word, so a sentence costs one pass over its words. The tables are
meant to miss rather than to invent: what is asked, told of the past or said about others binds nobody.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from enum import StrEnum

from health.compaction.reading.lasting import is_for_once, lasts, tells_of_a_lack
from health.compaction.reading.text import of_text, one_of


class EntryKind(StrEnum):
    """What a line of the ledger is, in the order of their worth: the last is given up first."""

    RULE = "rule"
    CONSTRAINT = "constraint"
    DEADLINE = "deadline"
    DECISION = "decision"
    GOAL = "goal"
    PREFERENCE = "preference"
    FACT = "fact"


_AMOUNT = r"[$€£¥]?\d"
_TIME = (
    r"(?:the end of|end of|next|this|tomorrow|tonight|noon|midnight|christmas|easter"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)day|[a-z]{3,9} \d|\d)"
)

_PAST = (
    r"(?:\w+ed|been|was|were|had|did|saw|got|went|knew|thought|found|understood|came|heard|felt|met|took|gave|said|told"
    r"|ran|ate|mind|again|ever|wrote|meant|made|left|lost|won)\b"
)

# "Use it five times, please": done with then. "Twice a day" and "five times at most" are rules.
_SO_OFTEN = (
    r"[^.!?\n]{0,100}\b(?:twice|(?:\d+|two|three|four|five|six|ten) times)\b[ ,]*(?:please|now|in a row)?[.! ]*$"
)
_SO_OFTEN_CHINESE = r"[^，。；每最\n]{0,50}[\d一两二三四五六七八九十] ?[次遍]吧?[。！ ]*$"

# One phrase a line: its first word (or words, by "|"), and after two blanks the expression that must follow.
_ENGLISH = {
    EntryKind.RULE: """
        must|shall|forbidden|prohibited|mandatory|required|insist|ensure|avoid|mustn't|refrain
        make|be  sure
        under  no circumstances
        without  exception
        at  all times
        at  (?:least|most) (?:[$€£¥]?\\d|one|two|three|four|five|six|ten|an? |once|twice)
        no  (?:more|less|fewer|later|earlier) than
        not  (?:allowed|permitted)
        you|nobody|agent|agents|assistant|users  (?:may not|cannot|can't|has to|have to|needs? to)
        from  now on
        remember  (?:to|that)\\b
        keep  in mind
        stick  to
        whatever  you do
    """,
    EntryKind.CONSTRAINT: f"""
        budget  (?:for [\\w ]{{1,30}} )?(?:is|of|stays|=|will|to|{_AMOUNT})
        budget's
        limit|limited|maximum|minimum|max|min|cap|capped  (?:is |are |of |to |at )?{_AMOUNT}
        up  to {_AMOUNT}
        within|under|over|below|exceed  {_AMOUNT}
        less|more  than {_AMOUNT}
        allergic|allergy|allergies|intolerant|intolerance
        vegetarian|vegan|celiac|coeliac|diabetic|halal|kosher
        gluten  free
        can't|cannot|doesn't|don't|won't  (?:eat|drink|travel|drive|fly|afford|exceed|do mornings|work on)
        can|does|do  not (?:eat|drink|travel|drive|fly|afford|exceed)
        only  have {_AMOUNT}
        have  only {_AMOUNT}
        not  (?:before|after) \\d
    """,
    EntryKind.DEADLINE: f"""
        deadline
        due  (?:date|on|by|in|{_TIME})
        no  later than
        by|before|until  {_TIME}
    """,
    EntryKind.DECISION: f"""
        let's|we'll|i'll  (?:just )?(?:go with|use|do it|keep|stick|take|make|move|switch|pick|call (?:it|the))\\b
        i|we  (?:will|am|are) (?:go with|going with|use|using|keeping|taking|switching|moving)\\b
        we're|i'm  (?:going with|using|keeping|taking|switching|moving)\\b
        i|we|i've|we've  (?:have )?(?:just |finally )?(?:decided|agreed|chosen|chose|settled|picked|booked|confirmed)\\b
        decision  (?:is|was)
        plan  is
        go  (?:ahead )?with
        make  (?:it|that) {_AMOUNT}
        switch  to
        actually|correction|wait|sorry  (?:no,? )?(?:it's|it is|it should|make it|i mean)\\b
        change  of plans?
        make|set|change|move|raise|lower|increase|reduce|push|postpone|reschedule|shift|rename  (?:the|my|our|it)\\b
        moves|moved|changes|changed|postponed|rescheduled|shifted|switched  (?:back |up |down )?to\\b
        is  (?:now|off|cancell?ed)\\b
    """,
    EntryKind.GOAL: """
        i|we|i'd|we'd  (?:would |really |also )?(?:want|need|like|hope|plan|intend|aim|wish) (?:to|you to)\\b
        i'm|we're  (?:trying|planning|hoping|looking|aiming) (?:to|for)\\b
        i'm|we're|am|are  (?:working on|building)\\b
        goal|goals|aim|objective|purpose|mission|task  (?:is|are|of)\\b
        help  me\\b
        point  is to\\b
    """,
    EntryKind.PREFERENCE: f"""
        i|we|i'd|we'd  (?:really |also |much |usually )?(?:prefer|love|hate|dislike|enjoy|rather|can't stand)\\b
        i|we  (?:really |also |do )?like\\b(?! to )
        i|we  (?:don't|do not) (?:like|enjoy)\\b
        i|we  (?:always|never|usually) (?!{_PAST})[a-z]
        loves|hates|likes|prefers|dislikes|enjoys|adores|favourite|favorite
        i'm  (?:not )?(?:a fan of|into|fond of)\\b
    """,
}
_CHINESE = re.compile(
    r"(?P<rule>必须|务必|一定要|禁止|严禁|(?<![舍恨怪巴要见免])不得(?!已|了)|不许|不准|不可以|切勿|请勿|切记|只许|只允许|永远(?:不要|不能|别)|始终"
    r"|(?<![我他她])不要(?!紧)|千万(?:别|不要)|别(?:再)?[用忘把让在给动删改发碰提写说]|至少|至多|最多|不超过"
    r"|(?<![我他她它们])只能|(?<![我他她它们还就也都])不能(?!打开|理解|确定|工作|运行|访问|连接)"
    r"|(?<!我)记得(?!我)|(?<!我)记住|不应该?|从现在(?:开始|起)|以后(?=[都请不别])|请(?:总是|一直|不"
    rf"|用(?!{_SO_OFTEN_CHINESE})))"
    r"|(?P<constraint>预算(?=[是为有：:在约大])|预算改|上限|下限|过敏|不(?:能)?吃|吃素|素食|忌口|以内)"
    r"|(?P<deadline>截止|最晚|最迟|期限|(?:[日号点天底]|星期.|周.)(?:之)?前)"
    r"|(?P<decision>决定|就用|就选|选定|定在|定了|定为|改成|改为|改到|改用|换成|换到|推迟到|提前到|采用|确定(?:是|用)|就这么)"
    r"|(?P<preference>喜欢|偏好|讨厌|偏爱|习惯用|宁愿|倾向于|最爱|希望你)"
    r"|(?P<goal>我们?(?:想|打算|计划|需要|希望|要(?!求))|目标[是：:]|帮我|任务[是：:])"
)
_CLOSING, _FULL_STOP = "\"'”’)）」』*_ \t\r\n", "。 \t\r\n"
_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?")
_HAN = re.compile(r"[\u4e00-\u9fff]")

# Binding only where somebody is told so, not in a story: "I never liked it", "you could never", "it's only a draft".
_WEAK_SIGNS = ("never", "always", "only", "do not", "don't")
_WEAK = re.compile(rf"(?:{'|'.join(_WEAK_SIGNS)})(?: ([a-z']+))?")
_WEAK_CUES = frozenset(sign.split()[0] for sign in _WEAK_SIGNS)
_TOLD = re.compile(
    r"(?:^|[,;:.!—–(*•\"-]|\b(?:please|and|but|so|then|also|just|or|should|must|to|again|now|instead|will|ok|okay))$"
)
_STORY = re.compile(
    r"\b(?:i've|i'd|i'm|he|she|it|they|it's|has|have|had|having|could|would|can|was|were|is|are|am|did|almost|nearly|as"
    r"|been|we've|they've|there)$"
)
_OVER = re.compile(_PAST)
_NO_ORDER = re.compile(r"(?:know|think|need|have|worry|ask|laugh|mind|believe|see|want|like|get|care|understand|seem)$")
_NOT_ONLY = re.compile(r"(?:i|you|we|he|she|they|one|two|three|four|five|a|some|then|problem)?$")
_DOING = re.compile(
    r"\b(?:use|accept|allow|write|reply|answer|return|edit|change|touch|send|speak|read|include|run|work|respond|deploy)$"
)
# At the head of a sentence these tell how to work from here on. "Write" and "make" only ask for one thing.
_TELLING = re.compile(
    r"(?:[-*•\d.)\s]|please |and |also |ok,? |so |actually,? |no,? ){0,6}"
    rf"(?:use\b(?!{_SO_OFTEN})|keep|reply|answer|respond|speak|call me|address me|format|indent|treat|assume"
    r"|follow|write in)\b(?! to\b)"
)
# One thing is asked for, and done with the answer. What names a habit ("every", "only", 每) is none, nor is an order to
# tell somebody else; what names somebody, a long number or a price is kept as a fact is.
_ERRAND = re.compile(
    r"(?:[^:\n]{1,24}: *)?(?:(?:and|also|now|then|next|ok|okay|please|just|can you|could you|would you)[ ,]+){0,4}"
    r"(?:(?:tell|give|show|find|remind|teach|get) (?:me|us)|look up|search for|explain|describe|summari[sz]e|list|name"
    r"|(?:write|draft|suggest|recommend|compose)(?: me| us)? (?:a|an|some|one|two|three|four|five|ten|\d+))\b"
    r"|(?:[^：\n]{1,12}：)?(?:那|再|请|麻烦|你|先|也|顺便){0,4}(?:(?:帮我|给我|跟我|为我)?(?:讲|推荐|列|写|解释|介绍|查|找|起|总结|描述)"
    r"(?:一|两|三|几|个|下|出|\d)|(?:告诉|教)我)"
)
_HABIT = re.compile(
    r"\b(?:every|everything|each|always|never|all|any|only|whenever|no|not|don't|without|must|should|at (?:most|least)"
    r"|from now)\b|[每都总只不别勿]|一律|以后"
)
_NAMED = re.compile(r"[^.:!? ] [A-Z]|\d{4}|\d[:.]\d|[$€£¥]")
_GUESS = re.compile(r" have \w{2,20}(?:ed|en)\b")
# "3 by 4 metres", "grew by 10 %": no day.
_SIZED = re.compile(r"\d ?(?:[cm]?m|feet|ft|inch(?:es)?|met(?:er|re)s?)?$")
_BY_SIZE = re.compile(
    r" \d[\d.]*+(?!:| ?(?:[ap]\.?m\b|o'clock|st|nd|rd|th|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec))"
)
_BY_SO_MUCH = re.compile(
    r" [$€£¥]?\d[\d.,]* ?(?:%|percent|euros?|dollars?|pounds?|points?|times|days?|hours?|minutes?)"
)
_BEFORE = {"avoid": " to", "remember": "i", "ensure": " to"}


def _table() -> dict[str, list[tuple[EntryKind, re.Pattern[str] | None]]]:
    """Each first word, with what must follow it for which kind."""
    table = defaultdict(list)
    for kind, phrases in _ENGLISH.items():
        for line in filter(None, map(str.strip, phrases.splitlines())):
            first, _, rest = line.partition("  ")
            for word in first.split("|"):
                table[word].append((kind, re.compile(rf"[ ,:-]{{1,2}}{rest}") if rest else None))
    return dict(table)


_FOLLOWING = _table()


def _any_of(*kinds: EntryKind) -> str:
    """All phrases of some kinds as one expression: most sentences have none, and cost one search."""
    phrases = (
        f"{word}{rest.pattern if rest else '(?![a-z])'}"
        for word, found in _FOLLOWING.items()
        for kind, rest in found
        if kind in kinds
    )
    return f"(?:{one_of((*_WEAK_SIGNS, *phrases))})"


_ANY_PHRASE = re.compile(rf"(?<![a-z]){_any_of(*EntryKind)}")
_MAY_BIND = re.compile(rf"\b{_any_of(EntryKind.RULE)}")
_WORTH = {kind: number for number, kind in enumerate(EntryKind)}


def ends_as_question(sentence: str) -> bool:
    """By its mark alone; `signs.is_question` hears also one whose mark nobody typed."""
    return sentence.rstrip(_CLOSING).endswith(("?", "？")) or sentence.rstrip(_FULL_STOP).endswith(("吗", "呢"))


def is_errand(sentence: str) -> bool:
    """Whether it asks for one thing, which is over with the answer: "look up order 7", "give me three names"."""
    low = _plain(sentence)
    return bool(_ERRAND.match(low)) and not _HABIT.search(low) and not _NAMED.search(sentence)


def may_bind(text: str) -> bool:
    """Whether a text can hold a binding sentence at all: one quick look, for long ones."""
    return bool(_MAY_BIND.search(_plain(text)) or _HAN.search(text))


def is_binding(sentence: str) -> bool:
    """Whether a sentence orders or forbids: must, never, do not, at most; 必须, 不要, 禁止, 务必. No question does."""
    return not ends_as_question(sentence) and EntryKind.RULE in _kinds(sentence)


def kind_of_sentence(sentence: str) -> EntryKind | None:
    """What somebody who may give rules said with a sentence that is no question; None for plain talk."""
    low, kinds = _plain(sentence), _kinds(sentence)
    if EntryKind.DEADLINE in kinds and not _WEAK.search(low):
        return EntryKind.DEADLINE
    if _TELLING.match(low) or (lasts(sentence) and EntryKind.CONSTRAINT not in kinds):
        return EntryKind.RULE
    if is_for_once(sentence):
        kinds -= {EntryKind.RULE}
    if tells_of_a_lack(sentence):
        kinds |= {EntryKind.CONSTRAINT}
    return min(kinds, key=_WORTH.__getitem__) if kinds else None


def _plain(sentence: str) -> str:
    return sentence.lower().replace("’", "'")


@of_text
def _kinds(sentence: str) -> frozenset[EntryKind]:
    """Of every phrase in a sentence its kind."""
    return frozenset(_found(_plain(sentence)))


def _found(low: str) -> Iterator[EntryKind]:
    if _ANY_PHRASE.search(low):
        yield from _english(low)
    if not low.isascii() and _HAN.search(low):
        yield from (EntryKind(match.lastgroup or "") for match in _CHINESE.finditer(low))


def _english(low: str) -> Iterator[EntryKind]:
    for word in _WORD.finditer(low):
        cue = word[0]
        for kind, rest in _FOLLOWING.get(cue, ()):
            if (rest is None or rest.match(low, word.end())) and not _excused(low, word):
                yield kind
        weak = _WEAK.match(low, word.start()) if cue in _WEAK_CUES else None
        if weak and _is_order(low, cue, weak):
            yield EntryKind.RULE


def _excused(low: str, word: re.Match[str]) -> bool:
    """ "To avoid", "I remember"; "it must have rained" is a guess, "3 by 4" a size."""
    if word[0] == "must":
        return bool(_GUESS.match(low, word.end()))
    if word[0] == "by":
        is_sized = _SIZED.search(low[max(0, word.start() - 12) : word.start()].rstrip())
        return bool(_BY_SO_MUCH.match(low, word.end()) or (is_sized and _BY_SIZE.match(low, word.end())))
    before = _BEFORE.get(word[0])
    return before is not None and low[: word.start()].rstrip().endswith(before)


def _is_order(low: str, cue: str, match: re.Match[str]) -> bool:
    left = low[max(0, match.start() - 24) : match.start()].rstrip()
    following = match[1] or ""
    if cue in {"never", "always"}:
        return not _STORY.search(left) and not _OVER.match(following)
    told = bool(_TOLD.search(left))
    if cue == "only":
        return bool(_DOING.search(left)) or (told and not _NOT_ONLY.match(following))
    return told and not _NO_ORDER.match(following)
