"""Which words of a sentence say something, so that two sentences that share them may be about the same; and which
belong together: what stands before a word, what it is of, what marks it.

Chinese, which does not part its words, has pairs of characters for them.
A sentence is compared with many others, so its words are looked at once.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable, Sequence
from operator import add

from health.compaction.reading.text import CJK, of_text, remembered
from health.compaction.reading.value_patterns import (
    BREAKS,
    CHANGES,
    COMMON,
    DETERMINERS,
    INDEFINITE,
    OF,
    SENTENCES,
    SHORTENED,
    WORDS,
    ZH_COMMON,
    ZH_GENERIC,
    may_hold_values,
    raw_tokens,
    stem,
)

# Two things are not about the same since both are on a Friday, in euros, or nobody's.
NO_SUBJECT = frozenset(
    "mon tue tues wed thu thur thurs fri chf eur usd gbp nobody anybody anyone".split()  # noqa: SIM905
)
CJK_BEGINS = "\u2e80"
# What a short Chinese sentence says something to be, or to have become.
ZH_SUBJECT = re.compile(f"(?:现在)?([{CJK}]{{1,8}}?)(?:现在)?(?:是|叫|用|[改换变写]?[成为])")
# Not chosen: "not tabs but", "instead of tabs", 不用制表符.
NOT_CHOSEN = re.compile(
    r"\b(?:instead of|rather than|no longer|not) [\w$€£: .-]{1,40}?(?= but\b|[,;.!]|$)"
    r"|(?:而不是|[别不](?:再|要)?[用搞])[^，,。了]{1,15}|不是[^，,。]{1,15}[，,]?(?=而?是)"
)


@of_text
def spelt_in(text: str) -> Sequence[str]:
    """The words and marks of a text in lower case."""
    return raw_tokens(text.lower())


@of_text
def forms_in(text: str) -> frozenset[str]:
    """Its words as they may stand among names, their stems too."""
    words = spelt_in(text)
    return frozenset(words).union([stem(word) for word in words if word[-1] == "s"])


@of_text
def outdated_words(text: str) -> frozenset[str]:
    """What a sentence says is no longer chosen: "Memcached instead of Redis"."""
    found = [hit[0] for hit in NOT_CHOSEN.finditer(text.lower())]
    told = [word for words in found for word in tokens_of(words.rstrip("."))]
    return frozenset((*content_of(told), *(word for word in told if any(map(str.isdigit, word)))))


def tokens_of(text: str) -> tuple[str, ...]:
    return stems_of(raw_tokens(text.lower()))


def stems_of(words: Iterable[str]) -> tuple[str, ...]:
    return tuple([stem(word) if word[-1] in "s'’" else word for word in words])


def content_of(tokens: Sequence[str]) -> Iterable[str]:
    """What says something: words, and pairs of Chinese."""
    return filter(is_word, tokens) if max(tokens, default="") < CJK_BEGINS else _with_pairs(tuple(tokens))


@remembered(SENTENCES)
def _with_pairs(tokens: tuple[str, ...]) -> Sequence[str]:
    """Of the one before a value the first half may be a small word: 定投三百, not 级要40分."""
    found: list[str] = []
    for token, behind in itertools.pairwise((*tokens, "")):
        if token > CJK_BEGINS:
            found += filter(_is_telling_pair, map(add, token, token[1:]))
            subject = ZH_SUBJECT.match(token)
            if subject and len(subject[1]) == 2 and not ZH_COMMON.issuperset(subject[1]):
                found.append(subject[1])  # 月份, of a small word
            if behind == "§" and len(token) > 1 and _is_half_telling(token[-2:]):
                found.append(token[-2:])
        elif is_word(token):
            found.append(token)
    return found


@remembered(WORDS)
def _is_telling_pair(pair: str) -> bool:
    return ZH_COMMON.isdisjoint(pair) and pair not in ZH_GENERIC


@remembered(WORDS)
def _is_half_telling(pair: str) -> bool:
    return pair[0] in ZH_COMMON and pair[1] not in ZH_COMMON and not CHANGES.search(pair)


@remembered(WORDS)
def is_word(token: str) -> bool:
    return (
        len(token) > 2
        and token[0].isalpha()
        and token not in COMMON
        and token not in NO_SUBJECT
        and not token.endswith(SHORTENED)
    )


# Which belong together

# Behind other small words may stand what a value is for.
HEADED = frozenset(("of", "to"))
# Whom a Chinese sentence begins with: the speaker, somebody of the speaker's, a nickname.
ZH_KIN = (
    "爸妈|父母|爷爷|奶奶|外公|外婆|姥姥|姥爷|爸爸|妈妈|哥哥|姐姐|弟弟|妹妹|太太|老婆|妻子|老公|丈夫|先生|孩子|儿子|女儿"
    "|爸|妈|哥|姐|弟|妹|邻居|同事|老板|朋友|室友|客户|学生|老师"
)
ZH_WHO = re.compile(
    f"[给帮替为]?(?P<titled>[{CJK}]{{1,2}}(?:先生|女士|小姐|老师|医生|师傅|经理|主任|教授|阿姨|叔叔))"
    f"|(?:[我咱他她你](?:们|家)?的?|隔壁)?(?P<kin>{ZH_KIN})|(?P<name>[小老阿](?![时心学师板])[{CJK}])|(?P<own>[我咱])"
)
KIN = re.compile(
    r"(?:my|our|his|her|their) (?:\w+ )?(?P<kin>colleague|boss|neighbou?r|brother|sister|mother|mum|mom|father|dad|wife"
    r"|husband|partner|son|daughter|friend|cousin|aunt|uncle|parents|kids|children|flatmate|roommate|client|teacher)\b"
    r"(?!['’]s)|(?P<own>i|we)(?=['’ ])|(?P<label>[a-z]{2,24}+): (?:my|i) "
)
# What tells things of one sort apart: a number behind them, their order or place before them, a letter, whose they are.
MARKED = (
    re.compile(
        r"\b(?P<noun>[a-z]++) (?P<mark>one|two|three|four|five|six|seven|eight|nine|ten"
        r"|\d++/\d++(?= )|\d++(?!/)(?=\D+\d))\b"
    ),
    re.compile(
        r"\b(?P<mark>first|second|third|last|next|final|morning|evening|upper|lower|left|right|front|rear|inner|outer"
        r"|big|small|long|short) (?P<noun>[a-z]++)"
    ),
    re.compile(r"\b(?P<mark>[a-z]++)['’]s (?P<noun>[a-z]++)"),
)
LETTERED = re.compile(
    r"\b(?P<noun>[A-Za-z]{3,20}+) (?P<mark>[A-HJ-Z])\b"
    rf"|^(?!星期|礼拜)(?P<zh>[{CJK}]{{2}})(?P<number>[一二三四五六甲乙丙丁])(?=[{CJK}])"
)
# Who takes over what another had is no other thing.
ZH_IN_CHARGE = re.compile("负责|接|管|主持|带|代|替|归")


@remembered(SENTENCES)
def told_of(text: str) -> str:
    """The person whom a sentence begins with."""
    if ZH_IN_CHARGE.search(text):
        return ""
    clauses = text.split("，")
    told = next(filter(may_hold_values, clauses), text)
    found = KIN.match(text.lower()) or ZH_WHO.match(told)
    if found is None or not found.lastgroup:
        return ""
    return "I" if found["own"] else found[found.lastgroup]


@remembered(SENTENCES)
def words_before(told: tuple[str, ...]) -> tuple[tuple[str, str, bool, bool, tuple[str, ...]], ...]:
    """Each word with the one behind it, whether it is a definite thing, and whether it may be of what follows."""
    found, tokens = [], ("", "", *told)
    for at, (before, word) in enumerate(itertools.pairwise(tokens), 1):
        if not is_word(before):
            continue
        definite, opens = tokens[at - 2] in DETERMINERS, not tokens[at - 2] or tokens[at - 2] in BREAKS
        part = word == "of" or (word in OF and (definite or opens or tokens[at - 2] in INDEFINITE))
        if definite or part:
            behind = tuple(each for each in tokens[at + 1 : at + 4] if each not in DETERMINERS)[:2]
            found.append((before, word, definite, part, behind))
    return tuple(found)


@remembered(SENTENCES)
def heads_of(told: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Words with what they belong to: "customer" in "the customer dump", "customers" in "replies to customers"."""
    found = [
        (word, head)
        for before, word, head in zip(told, told[1:], told[2:], strict=False)
        if before in DETERMINERS and is_word(word) and is_word(head)
    ]
    for at, (head, of) in enumerate(itertools.pairwise(told)):
        if of in HEADED and is_word(head):
            found += [(word, head) for word in [one for one in told[at + 2 : at + 4] if one not in DETERMINERS][:1]]
    return tuple(found)


def marks_on(text: str, nouns: Collection[str]) -> dict[tuple[str, int], set[str]]:
    """These nouns with their marks; a change may name both: "from version two to version three"."""
    found: dict[tuple[str, int], set[str]] = {}
    for noun, at, mark in marks_of(text):
        if noun in nouns:
            found.setdefault((noun, at), set()).add(mark)
    return found


@remembered(SENTENCES)
def marks_of(text: str) -> tuple[tuple[str, int, str], ...]:
    low = text.lower()
    found = [(at, hit) for at, pattern in enumerate(MARKED) for hit in pattern.finditer(low)]
    marked = [(stem(hit["noun"]), at, hit["mark"]) for at, hit in found]
    named = [
        (stem((hit["noun"] or hit["zh"]).lower()), hit["mark"] or hit["number"]) for hit in LETTERED.finditer(text)
    ]
    return (*marked, *((noun, len(MARKED), mark) for noun, mark in named))
