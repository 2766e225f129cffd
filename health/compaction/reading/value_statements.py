"""What a user states in a conversation: their sentences with the values in them, and what each is about.

A value is found by its looks, a subject by its place: behind "the" or "for", or at the head of a clause. In Chinese,
where small words tell little, it is whatever else is said.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from health.compaction.reading.quoting import TELLING, label_of, own_sentences, speakers, speaking_in, spoken_from
from health.compaction.reading.signs import Signs, is_question, signs_of
from health.compaction.reading.text import STOPWORDS, Passage, of_text, passages, remembered
from health.compaction.reading.value_patterns import (
    AFTER_SUBJECT,
    ASIDE,
    ATTRIBUTES,
    BREAKS,
    CHOSEN,
    CLAUSE,
    CODE,
    COMMANDS,
    COMMON,
    DENIED,
    DETERMINERS,
    ENGLISH_SORTS,
    HEADING,
    IN_CHARGE,
    INDEFINITE,
    NO_NAME,
    PARTED,
    QUOTED,
    SENTENCES,
    SORTS,
    STARTS,
    TALKING,
    TELLS,
    UNIT_WORDS,
    UNMARKED,
    ZH_COMMON,
    ZH_GENERIC,
    ZH_NAME,
    Sort,
    may_hold_values,
    raw_tokens,
    stem,
)
from health.compaction.reading.value_words import (
    CJK_BEGINS,
    content_of,
    forms_in,
    is_word,
    spelt_in,
    stems_of,
    tokens_of,
)
from health.compaction.terms.units import Role

# So many messages of the user are heard, the newest, each of so many characters at most: a run must not wait for this.
MOST_MESSAGES, MOST_TYPED = 500, 12_000
# Nobody states a value in more characters, nor says one back. Who assents adds no more words: "Noted.", "Perfect."
MOST_STATED, MOST_ECHOED, MOST_NOTED, MOST_OF_ASSENT = 240, 160, 100, 1
# "The grey rug? Don't order it." The question names the subject in so many words at most.
MOST_ASKED = 5
# Characters of a message that are searched for names and echoes.
HEARD = 4_000
# What may be in force besides names.
VALUES = tuple(sort for sort in SORTS if sort is not Sort.NAME)
# A clause with fewer words and marks opens the next.
LEAST_OF_CLAUSE = 4
# Words of a subject; words and Chinese pairs beside a value that has no subject.
LONGEST_PHRASE, MOST_BESIDE, MOST_PAIRS = 3, 3, 2
MESSAGES = 4_096  # whose statements are remembered


class Said(NamedTuple):
    role: Role
    text: str


@dataclass(frozen=True, eq=False, slots=True)
class Statement:
    """A sentence by the user that may state a value. `turn` counts the messages of the user.

    `topics` are what it is about by its grammar, `content` is all that says something, values that are no names aside.
    `key` is what of it the assistant said back, `heard` marks what got a short answer, `noted` where this says some of
    it back, or hardly a word of its own: small talk gets a kind word on something else. `bare` says only a value.
    `speaker` is who said it, where several people's names stand before what they say.
    Of its values `names` are one sort; `has_value` where there are others. Of a clause `whole` is the sentence, and
    `aside` what its other clauses say. `known` are names of the conversation.
    """

    message: int
    turn: int
    start: int
    end: int
    text: str
    tokens: tuple[str, ...]
    values: Mapping[Sort, frozenset[str]]
    topics: frozenset[str]
    content: frozenset[str]
    key: frozenset[str]
    heard: bool
    noted: bool
    bare: bool
    speaker: str
    whole: str = ""
    aside: frozenset[str] = frozenset()
    known: frozenset[str] = frozenset()
    names: frozenset[str] = field(init=False)
    has_value: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", self.values.get(Sort.NAME, frozenset()))
        object.__setattr__(self, "has_value", bool(self.values.keys() - {Sort.NAME}))

    @property
    def signs(self) -> Signs:
        return signs_of(self.text, self.whole)

    @property
    def clauses(self) -> tuple[Statement, ...]:
        """Read only where a sentence is compared: most are not."""
        return () if self.whole else _clauses(self)

    @property
    def is_part(self) -> bool:
        """Of a sentence that says more, a reason perhaps."""
        return self.whole not in ("", self.text)

    @property
    def at(self) -> tuple[int, int]:
        return self.message, self.start

    @property
    def words(self) -> frozenset[str]:
        """Its values, of all sorts."""
        return frozenset[str]().union(*self.values.values())


def statements(said: Sequence[Said]) -> Iterator[Statement]:
    """What the newest messages of the user state, in order; what is longer than a person types is not heard."""
    typed = [at for at, one in enumerate(said) if one.role is Role.USER]
    own = typed[-MOST_MESSAGES:]
    talk = [one._replace(text=one.text[:HEARD]) for one in (said[own[0] :] if own else ()) if one.role in TALKING]
    names, speaking = _names(talk), _speaking(talk)
    for turn, at in enumerate(own, start=1 + len(typed) - len(own)):
        if len(said[at].text) <= MOST_TYPED:
            yield from _of_message(said, at, turn, names, speaking)


def _names(said: Sequence[Said]) -> frozenset[str]:
    """Words that are capitalised amid sentences and never written small, nor behind "a"."""
    written = [_capitalised(one.text) for one in said]
    return frozenset[str]().union(*(names for names, _ in written)).difference(*(others for _, others in written))


@of_text
def _capitalised(text: str) -> tuple[frozenset[str], set[str]]:
    """Words of a text that may be names, and words that are none."""
    around = [".", *raw_tokens(" . ".join([passage.text for passage in passages(text)])), "."]
    others, names = set(around), set[str]()
    capitals = {token for token in others.difference(map(str.lower, others)) if token[0].isupper()}
    others -= capitals
    for at in [at for at, token in enumerate(around) if token in capitals]:
        before, behind = around[at - 1], around[at + 1]
        opens = before in STARTS and behind != "," and (behind in STOPWORDS or stem(behind) not in COMMON)
        (others if before in INDEFINITE else set() if opens else names).add(around[at].lower())
    return frozenset(name for name in names if _is_telling(name)), others


def _speaking(said: Sequence[Said]) -> frozenset[str]:
    """Who talks, by the names before what is said; not what is told of a thing: "Deadline: Friday"."""
    known = [name for name in speakers([one.text for one in said]) if stem(name.lower()) not in COMMON]
    known = [name for name in known if not any(word in name.lower() for word in ZH_GENERIC)]
    small = frozenset[str]().union(*(_capitalised(one.text)[1] for one in said if known))
    things = [name for name in known if name[0].isupper() and name.lower() in small]
    return frozenset(known if 2 * len(things) < len(known) else ())


def _is_telling(word: str) -> bool:
    return len(word) > 1 and word not in STOPWORDS and stem(word) not in COMMON and not word.endswith(NO_NAME)


def _of_message(
    said: Sequence[Said], at: int, turn: int, names: frozenset[str], speaking: frozenset[str]
) -> tuple[Statement, ...]:
    text, reply = _without_tellers(said[at].text), reply_to(said, at)
    return _stated(text, at, turn, names & forms_in(text), speaking_in(text, speaking), _note(reply), _is_short(reply))


@of_text
def _without_tellers(text: str) -> str:
    """Dots in the place of "she says": what somebody says is no subject."""
    return TELLS.sub(lambda hit: "·" * len(hit[0]), text) if TELLING.search(text.lower()) else text


@remembered(MESSAGES)
def _stated(
    text: str, at: int, turn: int, names: frozenset[str], speaking: frozenset[str], note: str, is_short: bool
) -> tuple[Statement, ...]:
    """A conversation is heard anew each time it has grown: of an earlier message the same statements come of it."""
    found: list[Statement] = []
    own, topics, asked, label, speaker = set(own_sentences(text)), frozenset[str](), False, label_of(text), ""
    for passage in passages(text):
        if passage.text not in own or not _is_plain(passage):
            continue
        # Who writes, and when, is no value of what is said.
        begins, who = spoken_from(passage.text, speaking, names)
        speaker = who or speaker
        said = passage._replace(text=passage.text[max(begins, label - passage.start) :])
        one = _statement(at, turn, said, speaker, names, note, is_short)
        no_subject = asked or (one.values and one.topics <= one.names)
        if topics and no_subject and len(one.content - one.names) <= MOST_BESIDE:
            one = replace(one, topics=one.topics | topics, content=one.content | topics)
        asked = len(one.tokens) <= MOST_ASKED and is_question(passage.text)
        topics = one.content if asked else one.topics
        if (one.content or one.values) and not all(
            is_question(text, heard=one.heard) for text in UNMARKED.split(passage.text)
        ):
            found.append(one)
    return tuple(_noted_alone(found, _content(note)))


def _noted_alone(found: Sequence[Statement], back: frozenset[str]) -> Iterator[Statement]:
    """ "Noted" is said to the values of a message: what else stands there is noted where some of it is said back."""
    has_values = any(one.values for one in found)
    for one in found:
        is_beside = has_values and not one.values and one.noted and back.isdisjoint(one.content)
        yield replace(one, noted=False) if is_beside else one


def _is_plain(passage: Passage) -> bool:
    """Short, and no code."""
    text = passage.text
    return not (passage.code or len(text) > MOST_STATED or text.startswith(COMMANDS) or CODE.search(text))


def reply_to(said: Sequence[Said], at: int) -> str:
    """What the assistant says right behind a message."""
    return said[at + 1].text if at + 1 < len(said) and said[at + 1].role is Role.ASSISTANT else ""


@of_text
def _note(reply: str) -> str:
    """What a reply begins with, where that is short and no question: the assistant may take note by it."""
    first = next((passage.text for passage in passages(reply[:HEARD])), "")
    asks = first.endswith(("?", "？")) and "，" not in first
    return first if not asks and _is_short(first) else ""


def _is_short(reply: str) -> bool:
    """A character of Chinese, three bytes, says what three letters do."""
    return len(reply.encode()) <= MOST_NOTED


def subjects(said: Sequence[Said]) -> frozenset[str]:
    """What the assistant took note of things under."""
    replies = (one.text for one in said if one.role is Role.ASSISTANT and _is_short(one.text))
    return frozenset[str]().union(*map(_topics_of_note, replies))


@of_text
def _topics_of_note(reply: str) -> frozenset[str]:
    return frozenset(_topics(tokens_of(_note(reply)), frozenset()))


def _statement(
    at: int, turn: int, passage: Passage, speaker: str, names: frozenset[str], note: str, is_short: bool
) -> Statement:
    read = _read_sentence(passage.text, names and names & forms_in(passage.text))
    back = _content(note)
    key = read.content & back
    heard = bool(note) and (is_short or len(key) > 1)
    noted = heard and (bool(key) or len(back) <= MOST_OF_ASSENT)
    key = key if len(key) > 1 else read.content
    place = at, turn, passage.start, passage.end
    return Statement(*place, passage.text, *read[:4], key, heard, noted, read.bare, speaker, known=names)


@remembered(SENTENCES)
def _clauses(one: Statement) -> tuple[Statement, ...]:
    return tuple(_parted(one))


def _parted(one: Statement) -> Iterator[Statement]:
    """ "Too dark" and "the hall will be white": each may be told of something else."""
    for sentence in UNMARKED.split(one.text):
        pieces = list(_pieces(sentence)) if not is_question(sentence) else []
        subject = frozenset[str]()
        for text in pieces if len(pieces) > 1 or sentence != one.text else ():
            read = _read_sentence(text, one.known and one.known & forms_in(text))
            if read.values and signs_of(text).changes and read.content <= read.values.get(Sort.NAME, frozenset()):
                read = read._replace(topics=read.topics | subject, content=read.content | subject)
            subject = read.content
            aside = one.content - subject
            yield replace(one, text=text, whole=sentence, key=subject, aside=aside, **read._asdict())


def _pieces(sentence: str) -> Iterator[str]:
    """Its clauses; what says next to nothing goes with the next, or at the end with the one before."""
    found: list[str] = []
    before = ""
    for text in PARTED.split(sentence):
        before = f"{before}{text}"
        if _tells_alone(before):
            found.append(before.strip())
            before = ""
    if before and found:
        found[-1] = f"{found[-1]}{before}"
    return iter(found)


def _tells_alone(text: str) -> bool:
    """Whether a clause has a value or says something, and does not only open the next: "on top of that"."""
    tokens = tokens_of(text)
    content = [*content_of(tokens)]
    says = len(content) > signs_of(text).adds or signs_of(text).forbids
    return may_hold_values(text.lower()) or (says and (len(tokens) >= LEAST_OF_CLAUSE or not text.isascii()))


class ReadSentence(NamedTuple):
    """What a sentence says by itself, in the fields of a statement."""

    tokens: tuple[str, ...]
    values: Mapping[Sort, frozenset[str]]
    topics: frozenset[str]
    content: frozenset[str]
    bare: bool


@of_text
def _content(text: str) -> frozenset[str]:
    return frozenset(content_of(tokens_of(text)))


@of_text
def _read_sentence(text: str, names: frozenset[str]) -> ReadSentence:
    """A conversation is heard anew at each compaction, its sentences are looked at once."""
    values, rest = _values(DENIED.sub(" ", QUOTED.sub(" ", text)), names)
    tokens = stems_of(spelt_in(text)) if rest is text else tokens_of(rest)
    content = frozenset(content_of(tokens))
    named_in = values.get(Sort.NAME, frozenset())
    stating = _clauses_with(named_in | {"§"}, rest) if named_in or "§" in tokens else []
    stated = frozenset(_topics([word for clause in stating for word in (*clause, ",")], names))
    named = frozenset(name for clause in stating for name in _attributes(clause) if not _topics(clause, frozenset()))
    bare = _is_bare(text, tokens, content - named_in, stated, named if values.keys() <= CHOSEN else named | named_in)
    if values.keys() - {Sort.NAME} and max(named_in, default="") > CJK_BEGINS:
        named |= named_in  # 李先生周五来 is of him
    return ReadSentence(tokens, values, stated | named or frozenset(_topics(tokens, names)), content | named, bare)


def _clauses_with(values: frozenset[str], text: str) -> list[tuple[str, ...]]:
    """The words of the clauses in which one of the values stands."""
    clauses = CLAUSE.split(HEADING.sub(r"\1 ", text) if ": " in text else text)
    return [clause for clause in map(tokens_of, clauses) if not values.isdisjoint(clause)]


def _attributes(clause: Sequence[str]) -> Iterator[str]:
    """ "Budget" in "the budget is 900", where no more is said of what it is the budget of; 预算 in 预算改到1100元."""
    tokens = (",", *clause, ".")
    if ATTRIBUTES.isdisjoint(tokens) and max(tokens) < CJK_BEGINS:
        return
    for before, word, behind in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if (
            word in ATTRIBUTES
            and (before in DETERMINERS or before == ",")
            and (behind in AFTER_SUBJECT or behind == "§")
        ):
            yield word
        if word > CJK_BEGINS and behind == "§":
            yield from (name for name in ZH_GENERIC if name in word)


def _is_bare(
    text: str, tokens: Sequence[str], beside: frozenset[str], stated: frozenset[str], named: frozenset[str]
) -> bool:
    """Little is said beside a value, and no subject is named."""
    if len(beside) > MOST_BESIDE:
        return False
    alone = not (beside or named) and (text.isascii() or not any(map(_tells, itertools.chain(*tokens))))
    most = MOST_PAIRS if max(beside, default="") > CJK_BEGINS else MOST_BESIDE
    changed = len(beside) <= most and not any(word < CJK_BEGINS for word in stated & beside)
    if _tells_change(text):
        return changed
    # "Call me on Saturday" begins with a deed: it says something of its own.
    return alone and not any(first[:1].isalpha() and first not in STOPWORDS for first in tokens[:1])


def _tells_change(text: str) -> bool:
    return signs_of(text).changes or signs_of(text).opens or signs_of(text).closes


def _tells(letter: str) -> bool:
    return letter > CJK_BEGINS and letter.isalpha() and letter not in ZH_COMMON


def _values(text: str, names: frozenset[str]) -> tuple[Mapping[Sort, frozenset[str]], str]:
    """The values of a sentence by their sorts, and the sentence with a mark in the place of all but names."""
    found: dict[Sort, frozenset[str]] = {}
    rest = text
    sorts = ENGLISH_SORTS if text.isascii() else SORTS
    for sort in VALUES if may_hold_values(text.lower()) else ():
        if hits := sorts[sort].findall(rest):
            found[sort] = _as_values(hits)
            rest = UNIT_WORDS.sub("§", sorts[sort].sub(" § ", rest))
    named = [hit for hit in sorts[Sort.NAME].findall(rest) if _names_something(hit, names)]
    named += [hit for hit in IN_CHARGE.findall(rest) if _is_telling(hit.lower())]
    if not text.isascii() and (hits := ZH_NAME.findall(rest)):
        named += hits
        rest = ZH_NAME.sub("§", rest)
    if named:
        found[Sort.NAME] = _as_values(named)
    return found, rest


def _as_values(hits: Iterable[str]) -> frozenset[str]:
    return frozenset(stem(" ".join(hit.lower().split())) for hit in hits)


def _names_something(word: str, names: frozenset[str]) -> bool:
    """Capitalised amid a sentence here or elsewhere, or written like no word."""
    return word.lower() in names or (
        _is_telling(word.lower()) and not word[1:].islower() and "'" not in word and "’" not in word
    )


def _topics(tokens: Sequence[str], names: frozenset[str]) -> list[str]:
    """What stands behind "the", "my" or "for", or begins a clause and is told of; all of it, in Chinese."""
    found = [word for word in content_of(tokens) if word > CJK_BEGINS or word in names]
    phrase: list[str] = []
    begun, certain = True, False
    for token in [*tokens, "."]:
        if begun and len(phrase) < LONGEST_PHRASE and is_word(token) and not (phrase and token.endswith("ed")):
            phrase.append(token)
            continue
        if phrase and (certain or token in AFTER_SUBJECT) and token not in ATTRIBUTES:
            found += phrase
        certain = token in DETERMINERS or token in ASIDE
        begun, phrase = certain or token in BREAKS, []
    return found
