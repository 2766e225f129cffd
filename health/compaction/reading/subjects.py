"""What a statement is about and what it says of it, so that a later one can take the place of an earlier.

Only plain forms are read: "the budget is 500", "make the budget 700", "use spaces instead", 预算改成700元. When a
form is not recognised there is no subject, and both statements stand.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from health.compaction.reading import subject_patterns as patterns
from health.compaction.reading.facts import is_binding
from health.compaction.reading.text import STOPWORDS, of_text, words

_LONGEST = 300  # characters: a statement in plain form is shorter
_LONGEST_VALUE = 90


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """`words` are what it is about, `types` how many numbers, days and times its value has.

    `update`: the statement itself says that something changes. `negated`: use X is said as never use X.
    """

    words: frozenset[str]
    value: str
    types: Counter[str]
    update: bool = False
    negated: bool = False

    def replaces(self, old: Subject) -> bool:
        """Whether the older one is stale now. In doubt it is not."""
        if not self._meets(old):
            return False
        if self.value in patterns.ENDED:
            return True
        if self.negated or old.negated:
            return self.value == old.value
        if old.types:
            return all(self.types[kind] >= number for kind, number in old.types.items())
        return self.update or self.value == old.value or self.is_single

    @property
    def is_single(self) -> bool:
        """Whether the subject has one value at a time, whatever the value is: a name, a place, the language."""
        return bool(self.words & patterns.SINGLE)

    def _meets(self, old: Subject) -> bool:
        part = self.words <= old.words or old.words <= self.words
        return self.words == old.words or (self.update and part)


_FORMS = (
    (patterns.COLON, patterns.LABELLED),
    (patterns.SETTING, patterns.SET),
    (patterns.BEING, patterns.STATED),
    (patterns.ZH_BEING, patterns.ZH_ENDED),
    (patterns.ZH_BEING, patterns.ZH_STATED),
)
_CHOICES = frozenset(patterns.CHOICE_OF)
_SIGNS = _CHOICES.union(*(needed for needed, _ in _FORMS))


def subject_of(sentence: str) -> Subject | None:
    """What a sentence in plain form is about; None for every other."""
    if len(sentence) > _LONGEST:
        return None
    low = _plain(sentence)
    signs = patterns.SIGN.findall(low)
    if _SIGNS.isdisjoint(signs):
        return None
    speaker = patterns.SPEAKER.match(low)
    said = low[speaker.end() :] if speaker else low
    forms = [form for needed, form in _FORMS if not needed.isdisjoint(signs)]
    chosen = None if _CHOICES.isdisjoint(signs) else _chosen(said)
    subject = chosen or _stated(said, forms) or (_stated(low, _across(speaker["who"], forms)) if speaker else None)
    if subject and speaker and patterns.HERS.match(said):
        return replace(subject, words=subject.words | {speaker["who"]})
    return subject


@lru_cache(maxsize=256)
def _is_name(who: str) -> bool:
    """Whether the words before a colon only name a subject. Those of "the budget is 500: fine" state something."""
    return _SIGNS.isdisjoint(patterns.SIGN.findall(who)) and not patterns.LED.match(who)


def _across(who: str, forms: list[re.Pattern[str]]) -> list[re.Pattern[str]]:
    """The readings of a sentence whose beginning looks like a speaker but may be a subject: "deadline: friday"."""
    return [form for form in forms if form is patterns.LABELLED] if _is_name(who) else forms


def types_of(value: str) -> Counter[str]:
    """How many days, times of day and other numbers a text names; each is counted as one of them."""
    found: Counter[str] = Counter()
    if not patterns.TYPED.search(value):
        return found
    for name, pattern in patterns.TYPES.items():
        value, times = pattern.subn(" ", value)
        if times:
            found[name] = times
    return found


def may_change(sentence: str) -> bool:
    """Whether a sentence may hold one of the three forms below. A quick look that spares most sentences the rest."""
    return patterns.CHANGING.search(sentence.lower()) is not None


@of_text
def stale_words(sentence: str) -> frozenset[str]:
    """The words of X in "not X but Y", "Y instead of X", 不是X而是Y; empty otherwise."""
    return next((_content(match["old"]) for match in _matches(patterns.STALE, sentence, "search")), frozenset())


@of_text
def corrects(sentence: str) -> bool:
    """Whether a sentence says that its speaker was wrong before: "sorry: …", "… not what I said", 更正：…"""
    return bool(patterns.CORRECTED.match(_said(sentence)))


@of_text
def withdrawn_words(sentence: str) -> frozenset[str]:
    """The words of X in "forget what I said about X", "X no longer applies", 忽略之前关于X的要求; empty otherwise."""
    found = next((_content(match["what"]) for match in _matches(patterns.WITHDRAWN, sentence, "match")), frozenset())
    return found - patterns.VAGUE


@of_text
def content_words(text: str) -> frozenset[str]:
    """The words of a text without stop words, plurals as singulars: "the budgets" and "budget" are the same."""
    return _content(_plain(text))


def _plain(sentence: str) -> str:
    return sentence.lower().replace("’", "'").lstrip("-*• ")


def _said(sentence: str) -> str:
    """The beginning of a sentence without the name of its speaker."""
    low = _plain(sentence)[:_LONGEST]
    speaker = patterns.SPEAKER.match(low)
    return low[speaker.end() :] if speaker else low


def _content(low: str) -> frozenset[str]:
    return frozenset(map(_one, {*words(low)} - STOPWORDS))


def _one(word: str) -> str:
    if not word.endswith("s"):
        return word
    word = word.removesuffix("'s")
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def _matches(patterns: tuple[re.Pattern[str], ...], sentence: str, how: str) -> Iterator[re.Match[str]]:
    low = _said(sentence)
    return filter(None, (getattr(pattern, how)(low) for pattern in patterns))


def _chosen(low: str) -> Subject | None:
    """One of a few things that exclude each other: "use tabs", "reply in French"."""
    if not patterns.CHOICE.search(low) or not patterns.CHOOSING.search(low):
        return None
    said = patterns.STALE[2].sub("", patterns.STALE[1].sub("", low))
    found = list(patterns.CHOICE.finditer(said))
    if len({match[0] for match in found}) != 1:
        return None
    name, before = patterns.CHOICE_OF[found[0][0]], said[: found[0].start()]
    if name == "language" and not patterns.IN_LANGUAGE.search(before):
        return None
    scope = frozenset(word for match in patterns.SCOPE.finditer(said) for word in _content(match[1])) - {
        _one(found[0][0])
    }
    return Subject(
        words=scope | {name},
        value=_one(found[0][0]),
        types=Counter(),
        update=bool(re.search(r"\binstead\b|\bswitch\b|\bnow\b|改", low)),
        negated=bool(patterns.NOT.search(before)),
    )


def _stated(low: str, forms: Sequence[re.Pattern[str]]) -> Subject | None:
    """ "The budget is 500", "make the budget 700", 预算改成700元."""
    match = next(filter(None, (form.match(low) for form in forms)), None)
    if match is None or match["about"] in patterns.NOBODY or patterns.WHEN.match(match["about"]):
        return None
    value, about = match["value"].strip(" .。!！"), _content(match["about"])
    if not about or len(value) > _LONGEST_VALUE:
        return None
    types, update = (
        types_of(value),
        value in patterns.ENDED
        or bool(match["update"] or patterns.CORRECTING.search(match["lead"]) or value.startswith("now ")),
    )
    if not (types or update or about & patterns.SINGLE) or is_binding(value):
        return None
    return Subject(words=about, value=value, types=types, update=update)
