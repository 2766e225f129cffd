"""Whether two sentences with values tell of two things: by what they count, begin with or measure.

    > The connect timeout is 5 seconds.
    > The read timeout is 30 seconds.       another timeout
    > The read timeout is 45 seconds now.   the same one

Where none of this is seen they may tell of one thing or of two, and other signs decide.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from health.compaction.reading.signs import signs_of
from health.compaction.reading.text import CJK, STOPWORDS, remembered
from health.compaction.reading.value_patterns import (
    ATTRIBUTES,
    BREAKS,
    CHANGES,
    COUNTS,
    DETERMINERS,
    PAID,
    PAIRS,
    SENTENCES,
    SORTS,
    ZH_COMMON,
    ZH_DIGITS,
    ZH_GENERIC,
    Sort,
    stem,
    units_of,
)
from health.compaction.reading.value_statements import Statement
from health.compaction.reading.value_words import CJK_BEGINS, ZH_SUBJECT, heads_of, marks_on, told_of, words_before

# What a number counts: a plural, with what describes it; in Chinese the thing behind a measure word.
_SMALL = "in|of|on|at|for|to|a|an|the|and|or|per|by|is|are|was|has|with|from|as"
COUNTED = re.compile(
    rf"(?:\d|\b(?:{COUNTS})) ((?:(?!(?:{_SMALL})\b)[a-z-]+ ){{0,2}}?(?!(?:{_SMALL})\b)(?:[a-z-]+s|people|children))\b"
)
ZH_COUNTED = re.compile(f"\\d ?[个位名把张扇间台辆条层件只本盏棵套双份杯瓶箱袋]([{CJK}]{{1,2}})")
# Between a subject and its value, without the ending of a plural.
VERBS = frozenset(
    """
    is are was were has have need take cost use run start end open close leave arrive weigh pay last get begin meet
    land depart go goe come sell want
    """.split()  # noqa: SIM905 (a list of words reads best as text)
)
# Of these something does many.
MANY = frozenset("have need want sell".split())  # noqa: SIM905
# What a sentence begins with that has no subject of its own.
NOBODY = frozenset("i we you he she it they this that there what who how".split())  # noqa: SIM905
# Before a thing these say that it is the newest or the one of before, not which one it is.
NOT_WHICH = frozenset(
    """
    new old current latest final previous former original updated revised actual real correct right total whole same
    now a an of for to in on at with and by then so actually please let's
    """.split()  # noqa: SIM905 (a list of words reads best as text)
)
ZH_QUALITY = re.compile(f"是([{CJK}]{{1,6}})的[。！]?$")
MOST_SUBJECT = 9  # tokens
FRAMED = re.compile(r"(?:on|in|at) (?:the )?(\w{1,20}+)")
ZH_NUMBERED = re.compile(f"(第[{ZH_DIGITS}一\\d]{{1,4}}|[{CJK}]{{1,3}}[(（]\\d{{1,2}}[)）]班)")
# What a ban allows up to here: "never more than 30", "never after 18:00". Any other number tells what is banned.
LIMIT = re.compile(
    r"\b(?:than|above|over|below|under|beyond|after|before|until|past|exceed|spend|up to|\d to) [$€£¥]?\d"
    r"|(?:超过|多于|少于|低于|高于|晚于|早于|花)[^，。\d]{0,2}\d|\d[^，。\d]{0,3}(?:以[上下前后]|[前后])"
)
ZH_OF = re.compile(f"([{CJK}]{{1,6}}?)的([{CJK}]{{1,4}}?)(?:[是叫为]|(?<!现)在)")
ZH_SAID = re.compile(f"[{CJK}§][{CJK}]")
ZH_SMALL = "".join(ZH_COMMON)
ZH_DONE, WHEN = re.compile(f"(?<=§)[{CJK}]{{2,8}}"), frozenset((Sort.DAY, Sort.TIME))
# A Chinese sentence begins with so few characters that tell which thing is meant. These tell none.
LONGEST_HEAD = 2
ZH_OPENS_NO_THING = frozenset(
    "我你他她它这那把将请让就还也都才只先再改换是在原新现总想要能可会给从对向跟和以今明昨后前下上周每"
)
WAYS = frozenset("long wide high tall deep thick heavy broad".split())  # noqa: SIM905
ZH_WAY = re.compile("([长宽高深厚重])[约是为有]? ?§")
ONE_END, OTHER_END = (frozenset(words.split()) for words in ("open start begin arrive", "close end leave depart"))
ZH_CHANGED = re.compile("[改换](?![成到为])|现在|不再|的是")
# What somebody ends: the words behind "cancel". What "is cancelled" stands before it.
ENDED = re.compile(
    r"(?<!is )(?<!are )(?<!was )(?<!were )(?<!be )(?<!been )(?<!got )(?<!gets )\b"
    r"(?:cancel|skip|drop|scrap|forget|ignore|disregard|abandon|stop|quit)(?:[pl]?(?:ed|ing)|s)? ([a-z][a-z'· ]{1,80}+)"
)
PLACES = re.compile(
    r"\b(?:in|into|onto|under|along|behind|near|with|before|after|until|from|at|on|by|when|while|because|since)\b"
)
ANYTHING = frozenset("it that this them those everything all".split())  # noqa: SIM905
DROPPED_INTO = re.compile(r"\bdrop\w{0,4} [a-z' ]{1,40}? (?:into|onto|off)\b")
# These end the thing itself; any other word behind "no longer" ends what it says.
NO_LONGER = re.compile(
    r"\bno longer (?!need|appl|h[oa]|valid|is\b|be\b|relevant|necessary|require|want|true|on\b|available|use)"
    r"([a-z]{2,20}+)"
)
# In Chinese what is ended may be a part of something: 仓库的灯. These say no more than that it is about something.
ZH_WHOLE = re.compile(r"的(?:事|要求|规[定则]|安排|计划|活动|预[约订]|约[定会]|课程|订[单票]|行程)")


# Whose thing another one is: "Carol's gets in at 9", "hers is at 10".
OWNER = re.compile(r"([A-ZÀ-Þ][\w-]{1,30}(?=['’]s )|[Hh]ers|[Hh]is|[Tt]heirs)(?:['’]s)? (?:is|was|[a-z]{2,20}s)\b")
# What somebody says of what is theirs, and of themselves.
THEIRS = re.compile(r"\b(?:my|mine|i['’]?m)\b|我的|我(?!们)(?=[家爸妈])")
OWN = re.compile(r"\b(?:i|my|mine|i['’]?m)\b|我(?!们)")


class Subject(NamedTuple):
    """The words before a sentence's verb that say what it is about, the verb, and what follows."""

    words: tuple[str, ...]
    verb: str
    behind: str


def tell_of_two(new: Statement, old: Statement) -> bool:
    """Whether each states a value of another thing. Sentences of which one states only a name are not judged."""
    if of_two_speakers(new, old) or _are_framed_otherwise(new, old):
        return True
    if not (new.text.isascii() and new.signs.changes) and _are_of_two_people(new.text, old.text):
        return True
    if not new.text.isascii() and (
        _open_otherwise("".join(new.tokens), "".join(old.tokens))
        or _are_done_otherwise(new, old)
        or _is_of_a_part(new.text, old.text)
    ):
        return True
    if not (new.has_value and old.has_value):
        return not new.names and _have_two_subjects(new, old)
    return (
        _count_two_things(new.text, old.text)
        or _have_two_subjects(new, old)
        or _measure_otherwise(new.tokens, old.tokens)
        or _are_opposite({*new.tokens}, {*old.tokens})
        or _forbid_otherwise(new, old)
    )


def _unsaid(words: Iterable[str], one: Statement) -> set[str]:
    """Those that a sentence does not have; "sorting invoices" is said where somebody sorts them."""
    return {word for word in words if word not in one.content and word.removesuffix("ing") not in one.tokens}


@remembered(PAIRS)
def is_of_another(new: Statement, old: Statement, shared: frozenset[str]) -> bool:
    """A part of the subject ("the cover for the piano"), or another of its sort ("the return train")."""
    mine, theirs = set(_qualifiers(new, shared)), set(_qualifiers(old, shared))
    if mine and (_unsaid(mine, old) - (frozenset() if theirs else PAID) or _unsaid(theirs, new)):
        return True
    return _is_marked_otherwise(new, old, shared) or _belongs_to_others(new, old, shared) or tell_of_two(new, old)


def _belongs_to_others(new: Statement, old: Statement, shared: frozenset[str]) -> bool:
    """ "Replies to customers" and "the customer dump"."""
    mine, theirs = ({head for word, head in heads_of(one.tokens) if word in shared} - shared for one in (new, old))
    return bool(mine and (theirs or (new.whole and not new.signs.changes))) and mine.isdisjoint(theirs)


def _is_marked_otherwise(new: Statement, old: Statement, shared: frozenset[str]) -> bool:
    """ "Office one" and "office two", "the first lesson" and "the last one", one person's desk and another's."""
    mine = marks_on(new.text, shared)
    theirs = marks_on(old.text, shared) if mine else {}
    return any(theirs[word].isdisjoint(marks) for word, marks in mine.items() if word in theirs)


def _qualifiers(one: Statement, shared: frozenset[str]) -> Iterator[str]:
    """Words before what is shared: "cover" in "the cover for the piano", "return" in "the return train"."""
    of_value = one.has_value
    for before, token, definite, part, behind in words_before(one.tokens):
        if before in shared or before in one.names or CHANGES.fullmatch(before):
            continue  # "correction" in "a correction about the groups"
        if (token in shared and definite) or (part and of_value and not shared.isdisjoint(behind)):
            yield before


def of_two_speakers(new: Statement, old: Statement) -> bool:
    """ "Greta: I take the 9:15" and "Omar: I take the 9:40", or "Carol's gets in at 9"; what they share either may
    change."""
    if (owner := OWNER.match(new.text)) and stem(owner[1].lower()) not in old.content:
        return True
    if new.speaker == old.speaker or not (new.speaker and old.speaker):
        return False
    sign, mine, theirs = new.signs, new.text.lower(), old.text.lower()
    if new.bare and not (sign.opens or sign.changes or sign.closes):
        return True
    return bool(OWN.search(theirs) or THEIRS.search(mine) or (OWN.search(mine) and not sign.changes))


def _are_framed_otherwise(new: Statement, old: Statement) -> bool:
    """ "In dev.yaml debug is on" and "in prod.yaml debug is off"; a day is a frame only to what is counted."""
    mine, theirs = _frame(new.text), _frame(old.text)
    if not (mine and theirs) or mine == theirs:
        return False
    counted = {Sort.AMOUNT} if new.signs.changes else {Sort.AMOUNT, Sort.TIME}
    is_a_day = SORTS[Sort.DAY].match(mine.title()) or SORTS[Sort.DAY].match(theirs.title())
    return not is_a_day or bool(counted & new.values.keys() & old.values.keys())


@remembered(SENTENCES)
def _frame(text: str) -> str:
    """What a sentence says first it is about."""
    found = FRAMED.match(text.lower()) or ZH_NUMBERED.match(text) or SORTS[Sort.DAY].match(text)
    return found[found.lastindex or 0] if found else ""


def _open_otherwise(text: str, other: str) -> bool:
    """读操作 and 写操作, 我喝茶 and 客人喝茶, 阳台§刷漆 and 厨房§刷漆: what stands before that which both say."""
    for mine, theirs in itertools.product(range(1, LONGEST_HEAD + 1), repeat=2):
        same = text[mine : mine + 2]
        if len(same) == 2 and same == other[theirs : theirs + 2] and ZH_SAID.fullmatch(same):
            heads = text[:mine], other[:theirs]
            return heads[0][-1] != heads[1][-1] and all(map(_is_a_head, heads))
    return False


def _are_done_otherwise(new: Statement, old: Statement) -> bool:
    """阳台周三刷漆 and 阳台周五换灯: what stands behind a day or a time is what is done then."""
    if WHEN.isdisjoint(new.values) or WHEN.isdisjoint(old.values):
        return False
    mine, theirs = ("".join(ZH_DONE.findall("".join(one.tokens))).strip(ZH_SMALL) for one in (new, old))
    return bool(mine and theirs) and (set(mine).isdisjoint(theirs) or (mine[1:] == theirs[1:] and mine != theirs))


def _is_of_a_part(text: str, other: str) -> bool:
    """界面是深色的 and 手机端的界面是浅色的."""
    whose, of, thing = text.partition("的")
    return bool(of) and thing[:2] == other[:2] and whose != "我" and _is_a_head(whose)


def _is_a_head(text: str) -> bool:
    return text == "我" or (text.isalpha() and min(text) > CJK_BEGINS and ZH_OPENS_NO_THING.isdisjoint(text))


def _are_of_two_people(text: str, other: str) -> bool:
    """我吃素 and 我同事吃素, 小玛喝茶 and 小约喝茶; 小艾是组长 and 小艾的副手是老山."""
    mine, theirs = told_of(text), told_of(other)
    part = ZH_OF.match(text)
    if part and part[1] in other and part[2] not in other and not any(name in part[2] for name in ZH_GENERIC):
        return True
    return bool(mine and theirs) and mine != theirs


def _count_two_things(text: str, other: str) -> bool:
    """ "The house has 3 rooms" and "the house has 2 floors": numbers of two things, not two numbers of one."""
    units, others = units_of(text), units_of(other)
    if units and others:
        return units.isdisjoint(others)
    mine, theirs = counted_in(text) or units, counted_in(other) or others
    if not (mine and theirs):
        return False
    return not any(word in other.lower() for word in mine) and not any(word in text.lower() for word in theirs)


def counts_something_else(text: str, other: str) -> bool:
    """Whether a sentence without a subject counts what the other does not tell of: "at most 3 sentences"."""
    if units_of(text) & units_of(other):
        return False
    mine = counted_in(text)
    return bool(mine) and not any(word in other.lower() for word in mine)


@remembered(SENTENCES)
def counted_in(text: str) -> frozenset[str]:
    """The words of what numbers count; in Chinese its characters."""
    found = [word.removesuffix("s") for phrase in COUNTED.findall(text.lower()) for word in phrase.split()]
    runs = () if text.isascii() else (run for run in ZH_COUNTED.findall(text) if run[0] not in ZH_COMMON)
    return frozenset((*found, *(letter for run in runs for letter in run if letter not in "子儿头")))


def _have_two_subjects(new: Statement, old: Statement) -> bool:
    """ "The connect timeout" and "the read timeout", "the roof" and "the roof insurance", "adults" and "children"."""
    (mine, verb, _), (theirs, other_verb, _) = _subject(new.tokens), _subject(old.tokens)
    shared = set(mine) & set(theirs)
    # "My appointment at the dentist", "my slot at the dentist": beside what is shared these say no more.
    plain = (ATTRIBUTES if shared else frozenset()) | new.names | old.names
    own, others = set(mine) - shared - plain, set(theirs) - shared - plain
    if own and others:
        return bool(shared) or verb == other_verb
    return bool(shared) and not new.signs.changes and (mine[-1] in own or theirs[-1] in others)


@remembered(SENTENCES)
def _subject(told: tuple[str, ...]) -> Subject:
    """Nothing where somebody is told of."""
    at = next((at for at, token in enumerate(told[:MOST_SUBJECT]) if token in VERBS), 0)
    begins = max((place + 1 for place, token in enumerate(told[:at]) if token in BREAKS), default=0)
    words = told[begins:at]
    if not words or not NOBODY.isdisjoint(words) or "§" in words:
        return Subject((), "", "")
    behind = next((token for token in told[at + 1 :] if token not in NOT_WHICH or PLACES.fullmatch(token)), "")
    return Subject(tuple(word for word in words if word not in DETERMINERS and word not in NOT_WHICH), told[at], behind)


def begin_alike(new: Statement, old: Statement) -> bool:
    """ "The tomatoes go …", 分支现在是…: what follows is told of the same."""
    if not new.text.isascii():
        one, other = ZH_SUBJECT.match(new.text), ZH_SUBJECT.match(old.text)
        return one is not None and other is not None and one[1] == other[1]
    mine, theirs = _subject(new.tokens), _subject(old.tokens)
    return bool(mine.words) and mine[:2] == theirs[:2] and mine.verb not in MANY


def tell_more(new: Statement, old: Statement) -> bool:
    """ "The car needs tyres" and "the car needs a wash", "the pump is in the cellar" and "the pump is loud"."""
    if not new.text.isascii():
        return _is_only_one_a_quality(new.text, old.text) or _tells_how_it_is(new, old)
    mine, theirs = _subject(new.tokens), _subject(old.tokens)
    if not mine.words or mine.words != theirs.words:
        return False
    return mine.verb != theirs.verb or mine.verb in MANY or _is_small(mine.behind) != _is_small(theirs.behind)


def _is_small(word: str) -> bool:
    return PLACES.fullmatch(word) is not None or (word in STOPWORDS and word not in DETERMINERS)


def _is_only_one_a_quality(text: str, other: str) -> bool:
    """分支是main and 分支现在是最新的; not 主题是深色 and 主题是浅色的."""
    mine, theirs = ZH_QUALITY.search(text), ZH_QUALITY.search(other)
    if mine and theirs:
        return False
    return bool((mine and set(mine[1]).isdisjoint(other)) or (theirs and set(theirs[1]).isdisjoint(text)))


def _tells_how_it_is(new: Statement, old: Statement) -> bool:
    """构建跑在本机 and 构建现在很慢: beside the thing both say nothing of the same."""
    rest = new.text.replace("现在", "")
    if rest == new.text or CHANGES.search(rest):
        return False
    thing = "".join(new.content & old.content)
    return not any(letter.isalpha() for letter in {*rest}.intersection(old.text).difference(thing))


def _measure_otherwise(told: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """ "120 cm long" and "80 cm wide", 长120厘米 and 宽80厘米."""
    mine, theirs = (WAYS.intersection(each) or set(ZH_WAY.findall(" ".join(each))) for each in (told, other))
    return bool(mine and theirs) and mine.isdisjoint(theirs)


def _are_opposite(told: set[str], other: set[str]) -> bool:
    """ "The shop opens", "the shop closes"."""
    return bool((told & ONE_END and other & OTHER_END) or (told & OTHER_END and other & ONE_END))


def ends_another(new: Statement, old: Statement, shared: Collection[str]) -> bool:
    """ "Skip breakfast before the meeting" ends no meeting, "the hotel bar was closed down" no stay in the hotel."""
    low = new.text.lower()
    if not new.text.isascii() and _ends_a_part(new, old, shared):
        return True
    if DROPPED_INTO.search(low) or _have_two_subjects(new, old):
        return True
    if (found := NO_LONGER.search(low)) and stem(found[1]) not in old.tokens:
        return True
    told = [set(map(stem, PLACES.split(words)[0].split())) for words in ENDED.findall(low)]
    ended = list(filter(None, told))
    return bool(ended) and all(ANYTHING.isdisjoint(words) and words.isdisjoint(shared) for words in ended)


def _ends_a_part(new: Statement, old: Statement, shared: Collection[str]) -> bool:
    """仓库的灯坏了，不用修 ends no rent of the 仓库."""
    parts = (part for word in shared for part in ZH_WHOLE.sub("", new.text).split(f"{word}的")[1:])
    return any(part[:1] not in old.text for part in parts)


def bans_anew(text: str) -> bool:
    """Whether what forbids also tells a change; in Chinese 不 alone counts as a sign of one."""
    return signs_of(text).changes if text.isascii() else ZH_CHANGED.search(text) is not None


def _forbid_otherwise(new: Statement, old: Statement) -> bool:
    """ "Never deploy on Fridays" and "never deploy on Mondays before 10:00" both hold, until a change is told of.

    The same words with another number or time are the old rule, changed, unless the number tells which thing is meant.
    """
    if not (new.signs.forbids and old.signs.forbids) or new.text == old.text:
        return False
    if bans_anew(new.text):
        return False
    return new.tokens != old.tokens or Sort.DAY in new.values or LIMIT.search(new.text.lower()) is None
