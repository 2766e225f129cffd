"""Which sentences are no longer in force, since the user changed, corrected or withdrew what they state.

A sentence states a value: a time, a day, a date, an amount, a name, or a choice among things. A later sentence about
the same subject with another value of the same sort takes its place; so does one without a subject right behind it
("No, 14:10."). What is added ("also", "a second one") replaces nothing, nor does what is said of another subject.

    > The ferry leaves at 11:20.           outdated
    > I rebooked the ferry, 14:10.         in force
    > The train leaves at 09:35.           in force

The subject is what two sentences share and few others have. Nothing is understood: when in doubt both stand.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property, lru_cache
from typing import NamedTuple

from health.compaction.quoting import own
from health.compaction.stopwords import STOPWORDS
from health.compaction.text import CJK, Passage, passages
from health.compaction.units import WRITTEN, Role, Unit

# Nobody states a value in more words; what is longer tells a story.
MOST_CHARS = 240
# Of the statements that share a word, so many of the newest are compared: time stays linear in what was said.
MOST_COMPARED = 48
# A correction without a subject belongs to what was stated in one of the last so many messages of the user.
NEAR = 1
LEAST_SHARED = 0.45
MOST_OF_A_CHOICE = 120
# What says a value back is short.
LONGEST_ECHO = 160


class Said(NamedTuple):
    role: Role
    text: str


class Outdated(NamedTuple):
    """Characters of a sentence of a message that the message `by` took the force of."""

    message: int
    start: int
    end: int
    by: int


class Sort(IntEnum):
    """What a value is; where a sentence has several, the first of these is what it states."""

    TIME = 1
    DATE = 2
    DAY = 3
    AMOUNT = 4
    NAME = 5
    CHOICE = 6


_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}"
_SORTS: Mapping[Sort, re.Pattern[str]] = {
    Sort.TIME: re.compile(r"(?<![\d:])\d{1,2}:\d\d(?:\s?[ap]m)?(?![\d:])|\b\d{1,2}\s?[ap]m\b|\b(?:noon|midnight)\b|[\d一二三四五六七八九十]{1,3}点(?:半|\d\d分?)?", re.I),
    Sort.DATE: re.compile(rf"\b{_MONTH}\.? \d{{1,2}}(?:st|nd|rd|th)?\b|\b\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_MONTH}\b|\b\d{{4}}-\d\d-\d\d\b|\d{{1,2}}月\d{{1,2}}[日号]?", re.I),
    Sort.DAY: re.compile(r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|(?:周|星期|礼拜)[一二三四五六日天]", re.I),
    Sort.AMOUNT: re.compile(r"(?<![A-Za-z0-9_.,-])[$€£¥]?\d[\d,.]*(?:k|m|%)?(?![A-Za-z0-9_-])"),
}
_SURNAMES = "王李张刘陈杨黄赵吴周徐孙马朱胡郭何高林罗郑梁谢宋唐许韩冯邓曹彭曾萧田董袁潘于蒋蔡余杜叶程苏魏吕丁任沈姚卢姜崔钟谭陆汪范金石廖贾夏韦方白邹孟熊秦邱江尹薛闫段雷侯龙史陶黎贺顾毛郝龚邵万钱严武戴莫孔汤"
_ZH_NAME = re.compile(rf"[{_SURNAMES}][\u4e00-\u9fff]{{1,2}}")
_LATIN_NAME = re.compile(r"(?<![A-Za-z0-9_'’])[A-ZÀ-Þ][A-Za-zÀ-ÿ0-9_'’-]*")
# A sentence that opens with one of these opens with no name.
_NO_NAME = ("ly", "ing", "'s", "’s", "n't", "'ll", "'re", "'m", "'ve")
# Words that stand in lower case somewhere are no names.
_LOWER = re.compile(r"(?<![A-Za-z0-9_'’])[a-zà-ÿ][a-zà-ÿ'’-]+")
_CODE = re.compile(r"[`{}<>=\\|]|\w\(|\w_\w|\w/\w|^\s*[/#$]|\w\.[a-z]{2,4}\b|--\w")
_WORD = re.compile(rf"[A-Za-zÀ-ÿ][\w'’-]*|[{CJK}]+")
# Closed classes of words. What is said besides something replaces nothing.
_ADDS = re.compile(
    r"\b(?:also|too|as well|besides|another|second|second(?:ary)?|third|plus|additional(?:ly)?|in addition|on top of|extra|separate(?:ly)?"
    r"|other|others|both|either|else|still|even|each|every other|helps?|backup|fallback|comparison|compare[ds]?|last (?:year|time|month)"
    r"|only (?:on|in|at|for|when|if)|on weekends|if (?:nobody|she|he|they|not)|their)\b"
    r"|[也还另]|除了|此外|同时|额外|单独|各自|分别|去年|上次|备用|周末",
    re.I,
)
_ENDS = re.compile(
    r"(?<!-)\b(?:off|skip(?:ped|ping)?|cancel+(?:ed|s|ing)?|called off|call off|no longer|(?:not|n't|never) .{0,40}\b(?:any ?more|any longer|after all)|any ?more|drop(?:ped)?"
    r"|forget|scrap(?:ped)?|ignore|scratch|abandon(?:ed)?|withdrawn?|stop(?:ped)?|won't happen|falls? through|fell through|no need|not needed|without)\b"
    r"|取消|不用|不再|不需要|作废|算了|撤|别再|没有了|不办|不要了|停",
    re.I,
)
_CHANGES = re.compile(
    r"\b(?:now|instead|rather|after all|actually|no longer|any ?more|chang(?:e[ds]?|ing)|switch(?:ed|ing|es)?|mov(?:e[ds]?|ing)|replac(?:e[ds]?|ing)|swap(?:ped)?"
    r"|confus(?:ed?|ing)|correct(?:ion|ed)?|wrong|mistake|misread|mixed|sorry|better|prefer|again|back|not|turn(?:s|ed) out|from (?:now|here|today|next)|decided|overruled|undo"
    r"|make (?:it|that)|wait|new|latest|updated?|revised)\b|改|换|更|还是|不是|不对|错|现在|不要|别|而是|挪|延|调|迁|恢复|回到|弄混",
    re.I,
)
_COMMON = frozenset(
    """
    able add agree agreed allow already always ask asked away back bad become begin belong belongs best better big book booked bring
    call came can care change check clear come comes could day days decide decided deliver different done easy end enough euro euros
    every everybody everyone everything fact feel few figure finally find fine first forget found free full gave get gets give given go goes
    going good got great half happen happens hard have hear heard help here hold hope hour hours idea just keep keeps kind know last late
    later leave leaves left less let like little long look looks lot made make makes many matter maybe mean meant meet mind
    month months morning move moved moves much must need needs never new next nice nothing number offer once open order others own pay
    people person pick picked place plan please point possible problem put ready real really remember right run runs said same say says
    see send set should show since small something sometimes soon sort sorry stay stays start still stop sure take takes talk tell thank
    thanks thing things think thought time times today together told tomorrow took true try turn turned turns two update use used uses
    usual wait want wanted wants way week weeks well went will wish with word work works world would write wrong year years yes yesterday
    yet one three four five six seven eight nine ten hundred thousand actually again almost along also although another anything around
    because before behind below between both bit case cost costs course deal else ever exactly expect far fix follow forward front given
    however instead inside keep kept later least likely live main mention middle most near noted often okay old only outside
    part past perhaps quick quite rather second several short side simple simply spend stuff such suppose though through tonight toward
    under until whole without worth
    """.split()  # noqa: SIM905 (a list of words reads best as text)
)
_ZH_FUNCTION = frozenset("的了是在我你他她它们这那就都也还和与把被给从吧吗呢啊呀哦嗯不没很再又")
_ZH_COMMON = frozenset("的了是在我你他她它们这那就都也还和与把被给到从为以要会能可吧吗呢啊呀哦嗯不没有很最再又才只先后上下中里外个些点元块年月日号时分用做来去说看想让请请问好谢应该知道")


_POINTS_BACK = re.compile(rf"{_CHANGES.pattern}|\b(?:it|that|no|oh|hm+|i meant|thinking|then)\b|吧$|吧[。！]", re.I)
_OF_SOMETHING = re.compile(r"\b(?:for|of|about|on) (?:the|my|our|your|[A-Z])")
_DIRECTS = re.compile(
    r"^(?:please|always|just|write|use|make|set|put|keep|give|send|answer|reply|speak|call|paint|plan|format|name|store|show|print|tell|take)\b"
    r"|\b(?:should|shall|must|has to|have to|needs? to|will be|wants?|would like|i'd like|i like|i prefer|i'd (?:love|rather)|always|never|please"
    r"|let's|as|in|for|belongs?)\b|请|用|定|按|要|想|得|应|就|选|写|叫",
    re.I,
)
# A further wish for something is no change of the one before.
_ORDERS = re.compile(r"\b(?:get|order|have|like|want|need|me|add|us)(?: to (?:get|order|have|add))? (?:a|an|one|two|three|some|another|\d)\b", re.I)
_REQUESTS = re.compile(r"(?:\w+,? )?(?:could|can|would|will|shall|may) (?:you|we|i|it|the|they|he|she|this|that|my|our)\b|能不能|可以|可否", re.I)

@dataclass(frozen=True, eq=False)
class Statement:
    """A sentence by the user that may state a value. `turn` counts the messages of the user."""

    message: int
    turn: int
    start: int
    end: int
    text: str
    ordinary: frozenset[str]

    @cached_property
    def values(self) -> Mapping[Sort, frozenset[str]]:
        return _values(self.text, self.ordinary)

    @cached_property
    def words(self) -> frozenset[str]:
        """What it may be about: words that are no value's but a name's, and none that say little."""
        return frozenset(_words(self.text))

    @property
    def sort(self) -> Sort:
        return min(self.values, default=Sort.CHOICE)


def outdated(said: Sequence[Said]) -> list[Outdated]:
    """The sentences that are no longer in force, in order. Linear in what was said, but for sentences alike."""
    statements = list(_statements(said))
    book = _Book(statements, said)
    for statement in statements:
        book.hear(statement)
    found = [Outdated(old.message, old.start, old.end, by) for old, by in book.gone.items()]
    return sorted([*found, *_echoes(said, book.gone)])


def _statements(said: Sequence[Said]) -> Iterator[Statement]:
    turn = 0
    ordinary = frozenset(word for one in said for word in _LOWER.findall(one.text))
    for at, one in enumerate(said):
        if one.role is not Role.USER:
            continue
        turn += 1
        typed = {passage.text for passage in passages(own(one.text))}
        for passage in passages(one.text):
            if passage.text in typed and _is_plain(passage):
                yield Statement(at, turn, passage.start, passage.end, passage.text, ordinary)


def _is_plain(passage: Passage) -> bool:
    """Short, and no code."""
    return not passage.code and len(passage.text) <= MOST_CHARS and not _CODE.search(passage.text)


class _Book:
    """Hears the statements in order; `gone` are those whose force a later message took."""

    def __init__(self, statements: Sequence[Statement], said: Sequence[Said]) -> None:
        self.gone: dict[Statement, int] = {}
        self._by_word: dict[str, list[Statement]] = defaultdict(list)
        self._recent: list[Statement] = []
        self._said_by = Counter(word for one in statements for word in one.words)
        self._count = max(2, len(statements))

    def _weight(self, word: str) -> float:
        """In shares of the most that a word can weigh."""
        return math.log(self._count / self._said_by[word]) / math.log(self._count)

    def hear(self, new: Statement) -> None:
        if not _is_question(new.text):
            for old in self._replaced_by(new):
                if old not in self.gone:
                    self.gone[old] = new.message
            for word in new.words:
                self._by_word[word].append(new)
            self._recent.append(new)

    def _replaced_by(self, new: Statement) -> list[Statement]:
        near = self._about_the_same(new)
        if _ADDS.search(new.text) and not (_CHANGES.search(new.text) or _is_ending(new)):
            return []
        found = [old for old in near if self._takes_place(new, old)]
        return found or self._said_just_before(new, bool(near))

    def _about_the_same(self, new: Statement) -> list[Statement]:
        """Earlier statements that share what few others have, those that share most of it."""
        scores: Counter[Statement] = Counter()
        for word in new.words:
            for old in self._by_word[word][-MOST_COMPARED:]:
                if old.message != new.message and old not in self.gone:
                    scores[old] += self._weight(word)
        best = max(scores.values(), default=0.0)
        return [old for old, score in scores.items() if score >= max(LEAST_SHARED, 0.75 * best)]

    def _takes_place(self, new: Statement, old: Statement) -> bool:
        changed, stated = _own_sort(new, old), _own_sort(old, new)
        if stated is Sort.CHOICE and changed in new.values and changed in old.values:
            stated = changed  # a correction that names what it corrects
        if changed is not stated:
            return changed is Sort.CHOICE and _is_ending(new) and not _is_ending(old)
        if changed < Sort.NAME:
            return True
        return not _is_further_wish(new, old) and (changed is Sort.NAME or _is_other_choice(new, old))

    def _said_just_before(self, new: Statement, has_subject: bool) -> list[Statement]:
        """What a value without a subject corrects: the newest statement with a value of the sort."""
        if has_subject or new.sort is Sort.CHOICE or (new.sort is Sort.NAME and not _CHANGES.search(new.text)):
            return []
        if len(new.words) > 1 and (_OF_SOMETHING.search(new.text) or len(new.words) > 3 or not _POINTS_BACK.search(new.text)):
            return []
        for old in reversed(self._recent):
            if new.turn - old.turn > NEAR:
                break
            if old.message != new.message and old.sort is new.sort and old not in self.gone:
                return [old] if old.values[old.sort] != new.values[new.sort] else []
        return []


def _own_sort(one: Statement, other: Statement) -> Sort:
    """Of what it states and the other does not; what both name is the subject."""
    return min((sort for sort, values in one.values.items() if values - other.values.get(sort, frozenset())), default=Sort.CHOICE)


def _is_other_choice(new: Statement, old: Statement) -> bool:
    return _is_wish(new) and _is_short(new) and _is_short(old) and bool(new.words - old.words) and bool(old.words - new.words)


def _is_wish(one: Statement) -> bool:
    """Something decided, wished or changed, not just told."""
    return bool(_CHANGES.search(one.text) or _DIRECTS.search(one.text)) and not one.text.endswith(("?", "？"))


def _is_further_wish(new: Statement, old: Statement) -> bool:
    return bool(_ORDERS.search(new.text) or _ORDERS.search(old.text))


def _is_ending(one: Statement) -> bool:
    return bool(_ENDS.search(one.text)) and _is_short(one)


def _is_short(one: Statement) -> bool:
    return len(one.text) <= MOST_OF_A_CHOICE


def _is_question(text: str) -> bool:
    """A request in the form of a question is none."""
    return text.rstrip("\"'”’) ").endswith(("?", "？")) and not _REQUESTS.match(text)


def _values(text: str, ordinary: frozenset[str]) -> Mapping[Sort, frozenset[str]]:
    found: dict[Sort, frozenset[str]] = {}
    rest = text
    for sort, pattern in _SORTS.items():
        hits = frozenset(" ".join(hit[0].lower().rstrip(".,").split()) for hit in pattern.finditer(rest))
        if hits:
            found[sort] = hits
            rest = pattern.sub(" ", rest)
    names = frozenset(_names(rest)) - ordinary
    return found | ({Sort.NAME: names} if names else {})


def _names(text: str) -> Iterator[str]:
    """Capitalised words that are no ordinary ones."""
    for hit in _LATIN_NAME.finditer(text):
        word = hit[0].lower()
        if word in STOPWORDS or word in _COMMON or len(word) < 2:
            continue
        if hit.start() or not word.endswith(_NO_NAME):
            yield word
    for hit in _ZH_NAME.finditer(text):
        yield hit[0]


def _words(text: str) -> Iterator[str]:
    for pattern in _SORTS.values():
        text = pattern.sub(" ", text)
    for hit in _WORD.finditer(text):
        word = hit[0].lower()
        if word[0] > "\u2e80":
            yield from (word[at : at + 2] for at in range(len(word) - 1) if _is_word(word[at : at + 2]))
        elif len(word) > 2 and word not in STOPWORDS and word not in _COMMON:
            yield word.removesuffix("'s").removesuffix("’s").rstrip("s")


def _is_word(pair: str) -> bool:
    return not _ZH_FUNCTION.intersection(pair) and not _ZH_COMMON.issuperset(pair)


def _echoes(said: Sequence[Said], gone: Mapping[Statement, int]) -> Iterator[Outdated]:
    """What the assistant said back right after: sentences with a value that is no longer in force."""
    for old, by in gone.items():
        at = old.message + 1
        if at >= len(said) or said[at].role is not Role.ASSISTANT:
            continue
        values = {value for values in old.values.values() for value in values} or old.words
        for passage in passages(said[at].text[:2000]):
            low = passage.text.lower()
            if len(low) <= LONGEST_ECHO and any(value in low for value in values):
                yield Outdated(at, passage.start, passage.end, by)


@lru_cache(maxsize=8)
def outdated_in(units: tuple[Unit, ...]) -> Mapping[str, tuple[tuple[int, int], ...]]:
    """By the id of a message the places, start and end, of its sentences that are no longer in force."""
    spoken = [unit for unit in units if not (unit.inserted or unit.framed) and unit.kind not in WRITTEN]
    found: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for one in outdated([Said(unit.role, unit.content) for unit in spoken]):
        found[spoken[one.message].id].append((one.start, one.end))
    return {name: tuple(places) for name, places in found.items()}
