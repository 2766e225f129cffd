"""What a user states in a conversation: their sentences with the values in them, and what each is about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from health.compaction.reading.quoting import TELLING, label_of, own_sentences, speakers, speaking_in, spoken_from
from health.compaction.reading.sentence_values import MOST_BESIDE, all_content, is_telling, read_sentence, topics_of
from health.compaction.reading.signs import Signs, is_question, signs_of
from health.compaction.reading.text import STOPWORDS, Passage, of_text, passages, remembered
from health.compaction.reading.value_patterns import (
    CODE,
    COMMANDS,
    COMMON,
    INDEFINITE,
    PARTED,
    SENTENCES,
    STARTS,
    TALKING,
    TELLS,
    UNMARKED,
    ZH_GENERIC,
    Sort,
    may_hold_values,
    raw_tokens,
    stem,
)
from health.compaction.reading.value_words import (
    content_of,
    forms_in,
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
# A clause with fewer words and marks opens the next.
LEAST_OF_CLAUSE = 4
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
    return frozenset(name for name in names if is_telling(name)), others


def _speaking(said: Sequence[Said]) -> frozenset[str]:
    """Who talks, by the names before what is said; not what is told of a thing: "Deadline: Friday"."""
    known = [name for name in speakers([one.text for one in said]) if stem(name.lower()) not in COMMON]
    known = [name for name in known if not any(word in name.lower() for word in ZH_GENERIC)]
    small = frozenset[str]().union(*(_capitalised(one.text)[1] for one in said if known))
    things = [name for name in known if name[0].isupper() and name.lower() in small]
    return frozenset(known if 2 * len(things) < len(known) else ())


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
    return tuple(_noted_alone(found, all_content(note)))


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
    return frozenset(topics_of(tokens_of(_note(reply)), frozenset()))


def _statement(
    at: int, turn: int, passage: Passage, speaker: str, names: frozenset[str], note: str, is_short: bool
) -> Statement:
    read = read_sentence(passage.text, names and names & forms_in(passage.text))
    back = all_content(note)
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
            read = read_sentence(text, one.known and one.known & forms_in(text))
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
