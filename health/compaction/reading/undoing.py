"""Whether a sentence says of another no more than that it is not so: a deed is not to be done, a ban is lifted; and
whether two short wishes choose differently for the same thing, where neither states a value.

    > Order the grey rug.
    > Don't order the rug.              undoes it, whatever the deed is
    > Don't put the rug near the fire.  tells something else

    > Paint the shed dark green.
    > The shed will rather be ochre.    another choice
    > The shed needs a new lock.        tells more of it

No list of words for calling off is needed here: what both say is compared. Of a list only one thing may be ended or
changed ("Ben can't come"): then the rest of it holds.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from health.compaction.reading.in_place import go_on_alike
from health.compaction.reading.signs import signs_of
from health.compaction.reading.text import STOPWORDS, remembered
from health.compaction.reading.two_things import bans_anew, begin_alike, tell_more
from health.compaction.reading.value_patterns import (
    CHANGES,
    CHOSEN,
    HOUR,
    PAIRS,
    PARTED,
    SENTENCES,
    ZH_COMMON,
    Sort,
    stem,
    units_of,
)
from health.compaction.reading.value_statements import Statement
from health.compaction.reading.value_words import CJK_BEGINS, outdated_words

# A deed that is not to be done, or that something is not so.
NOT_DONE = re.compile(
    r"\b(?:(?:is|are|am|was|['’]m|['’]re|['’]s) not|(?:is|are|was)n['’]t)\b"
    r"|\b(?:do not|never|let's not|need not|(?:do|does|need)n['’]t) (?:\w+ly |ever )?(?P<deed>\w{1,20})"
    r"|别(?!忘)|不用|不要|不想|不打算"
)
# These are done with anything: "I don't need the rug".
ANY_DEED = frozenset("need want bother do have".split())  # noqa: SIM905
PERMITTED = frozenset("fine okay ok allowed welcome may can again now anymore please turn".split())  # noqa: SIM905
GOES_ON = re.compile(r"(?:^|[,;:] )now\b|现在", re.IGNORECASE)
# What somebody did, not what is done or to be done.
DID = re.compile(
    r"(?<!\bis )(?<!\bare )(?<!\bbe )\b(?:(?!need|agree|call|decid|lik|plan|prefer|us|want)[a-z]{3,20}ed"
    r"|ate|bought|brought|built|came|drove|found|gave|got|left"
    r"|made|met|paid|put (?:away|down|up)|saw|sent|sold|told|took|went|wrote)\b"
)
# Who is content changes nothing, and goes on to the next thing.
PRAISES = re.compile(
    r"\b(?:great|good|nice|fine|works?|lovely|perfect|thanks?|love|like|pass(?:es|ed)?|ok|okay|cool|neat|better|yes)\b"
    r"|[很真挺]好|好的|^好|谢|不错|没问题|通过|完成"
)
# Words that say nothing of a thing.
SMALL = STOPWORDS | ANY_DEED | PERMITTED | ZH_COMMON | frozenset(("never", *"别现后今行以"))

# Between the things of a list; a thing has so few characters. What a list is of stands before its first thing.
LISTED = re.compile(r",? (?:and|or|plus) |[,;、；] ?|[和与及]")
FEWEST_LISTED, LONGEST_LISTED = 3, 24
IS_LIST = re.compile(r" (?:and|or|plus) |[、:：和与及]")
HEADING = re.compile(r"[:：是有]|\b(?:are|is|covers?|includes?|has|have)\b")


def changes_a_part(new: Statement, old: Statement, shared: Collection[str]) -> bool:
    """ "Ben can't come", where Anna, Ben and Chris are invited: it names one thing of a list, and lists none itself."""
    things = _listed(old.text)
    if not things or not shared or _listed(new.text):
        return False
    return any(all(word in thing for word in shared) for thing in things)


@remembered(SENTENCES)
def _listed(text: str) -> tuple[str, ...]:
    """The things of a list that makes up a sentence, or its end."""
    if not IS_LIST.search(text):
        return ()
    things = LISTED.split(text.lower().rstrip(".。!！"))
    if len(things) < FEWEST_LISTED:
        return ()
    things[0] = HEADING.split(things[0])[-1].rpartition(" ")[2]
    return tuple(things) if max(map(len, things)) <= LONGEST_LISTED else ()


def undoes(new: Statement, old: Statement) -> bool:
    """ "Don't order the rug", "emojis are fine now": says no more than that what was told or forbidden is not so."""
    sign, before = new.signs, old.signs
    if not new.content or (new.has_value and not new.words <= old.words):
        return False
    if before.forbids and (not sign.forbids or "never" in new.tokens):
        return sign.permits and _says_no_more(new, old)
    if new.whole and not new.signs.changes and len(new.content & old.content) < 2:
        return False
    denied = _not_done(new.text)
    deed = denied and denied["deed"]
    return bool(denied) and (not deed or stem(deed) in ANY_DEED.union(old.tokens)) and _says_no_more(new, old)


@remembered(SENTENCES)
def _not_done(text: str) -> re.Match[str] | None:
    return NOT_DONE.search(text.lower())


def _says_no_more(new: Statement, old: Statement) -> bool:
    """Whether each word of it, of Chinese each character, is small, or the older sentence has it too."""
    known = {piece for token in old.tokens for piece in (token, f"{token}ing", *token)}
    pieces = (piece for token in new.tokens for piece in (token if token > CJK_BEGINS else (token,)))
    return all(not piece.isalpha() or piece in known or _is_small(piece) for piece in pieces)


def _is_small(piece: str) -> bool:
    return piece in SMALL or CHANGES.fullmatch(piece) is not None


def says_instead(new: Statement, old: Statement) -> bool:
    """ "We decided to use Memcached instead of Redis": names what it replaces, beside another word of it."""
    left, said = outdated_words(new.text) - outdated_words(old.text), old.content | old.words
    if not left or not left <= said or len(new.text) > MOST_CHOSEN:
        return False
    return not ({*filter(str.isalpha, old.tokens)} - left - STOPWORDS).isdisjoint(new.tokens)


@remembered(SENTENCES)
def _did(text: str) -> str:
    """The first clause that tells what somebody did, with dots for the deed: "moved the charts" tells no change."""
    clauses = ((clause, DID.search(clause)) for clause in PARTED.split(text.lower()))
    told, deed = next(((clause, found) for clause, found in clauses if found), ("", None))
    return told if deed is None or " to " in told[deed.end() :] else DID.sub("…", told)


def report_two_deeds(new: Statement, old: Statement) -> bool:
    """ "Mia mended the fence" and "Tom painted the fence": what somebody did stays done, unless a change is told."""
    if not (_did(old.text) and (told := _did(new.text))):
        return False
    sign = new.signs
    return not (CHANGES.search(told) or sign.opens or sign.closes or sign.ends)


# What bears a name. A number has a limit's place more often.
NAMED = frozenset((Sort.MARK, Sort.PLACE, Sort.NAME))
NOTHING = frozenset[str]()
# What is chosen is said in few characters; of a thing in so few words, or twice as many pairs: more tell a story.
MOST_CHOSEN, MOST_OWN = 120, 2


def is_other_choice(new: Statement, old: Statement, shared: frozenset[str]) -> bool:
    """Two short wishes that were taken note of, each with something of its own, be it a small word: "it is main"."""
    told = (new.heard and old.heard) or _is_told_anew(new, old, shared)
    wishes = told and max(len(new.text), len(old.text)) <= MOST_CHOSEN
    if not wishes or _told_exactly(own_values(new, old)) or _told_exactly(own_values(old, new)):
        return False
    if _chooses_nothing(new, old) or _is_a_deed(old, shared):
        return False
    sign, begins = new.signs, new.tokens[:1] == old.tokens[:1] or begin_alike(new, old)
    is_now = sign.changes and (begins or sign.opens)
    mine, theirs = (frozenset(one.tokens) if is_now else one.content | one.words for one in (new, old))
    return bool(mine - theirs and theirs - mine) and _is_about_a_thing(new, shared & old.key & new.key)


def _is_told_anew(new: Statement, old: Statement, shared: frozenset[str]) -> bool:
    """Whether it says itself that it changes what was told of a thing, whatever was answered; "now write" goes on.

    "Too cold, the hall gets white": so does what has a reason, and goes on as the older one did or has its words there.
    """
    if _did(new.text) and _did(old.text):
        return False
    both = (shared | new.aside & old.content) - new.names
    alike = go_on_alike(new, old, shared - new.names)
    is_same = shared & new.topics & old.topics - new.names or len(both) > 1 or alike
    own = max(len(one.content - shared) for one in (new, old))
    most = MOST_OWN + new.is_part
    if not is_same or own > (most if new.text.isascii() else 2 * most):
        return False
    text = new.whole or new.text
    if signs_of(text if begin_alike(new, old) else GOES_ON.sub("", text)).changes:
        return True
    if not new.is_part or PRAISES.search(text.lower()):
        return False
    return not (old.content - new.content).isdisjoint(new.aside) or (alike and not new.whole.startswith(new.text))


def _chooses_nothing(new: Statement, old: Statement) -> bool:
    """Deeds follow each other, two bans both hold, and a ban is lifted only where it is undone."""
    sign, before = new.signs, old.signs
    if sign.deeds or before.deeds or before.past or (sign.ends and before.ends) or tell_more(new, old):
        return True
    return before.forbids and (sign.permits or (sign.forbids and not bans_anew(new.text)))


def _is_a_deed(one: Statement, shared: frozenset[str]) -> bool:
    """买牛奶: one character beside a thing."""
    return len(shared) == 1 and len({*filter(str.isalpha, one.text)}.difference(*shared)) == 1


def _told_exactly(values: Mapping[Sort, frozenset[str]]) -> bool:
    """By a day, a time, a mark, digits: "as two lines" chooses as "as a table" does."""
    in_words = (Sort.AMOUNT,) if all(one.isascii() and one.isalpha() for one in values.get(Sort.AMOUNT, ())) else ()
    return bool(values.keys() - CHOSEN.union(in_words))


def _is_about_a_thing(new: Statement, about: frozenset[str]) -> bool:
    """Of a person much may be true at once, unless a change is told of."""
    if about & new.names and not new.signs.changes:
        return bool(about & new.topics - new.names)
    return bool(about)


def own_values(one: Statement, other: Statement) -> Mapping[Sort, frozenset[str]]:
    """The values of a sentence that the other does not have; what both name is the subject."""
    theirs = other.values
    return {sort: own for sort, values in one.values.items() if (own := values - theirs.get(sort, NOTHING))}


def people(one: Statement, other: Statement) -> list[str]:
    """Its own names, not those of rooms: "C3"."""
    return [name for name in own_values(one, other).get(Sort.NAME, ()) if name.isalpha() and name not in other.content]


@remembered(PAIRS)
def common_sort(new: Statement, old: Statement) -> Sort | None:
    """The sort of value that both state, and differently."""
    ours, theirs = new.values, old.values
    differing = [
        sort for sort in ours.keys() & theirs.keys() if not (ours[sort] <= theirs[sort] or ours[sort] >= theirs[sort])
    ]
    both = min(differing, default=Sort.TIME if tells_hour(new, old) or tells_hour(old, new) else None)
    # With one sort each there is no other.
    if both is Sort.NAME and len(ours) + len(theirs) > 2 and min(own_values(new, old)) is not min(own_values(old, new)):
        return None
    if both is Sort.MARK and new.signs.deeds and not CHANGES.search(new.text.lower().partition(" ")[2]):
        return None  # one file is mended, then another
    if both in NAMED and _forbid_each(new, old):
        return None
    return None if both is Sort.AMOUNT and _count_apart(new, old) else both


def _count_apart(new: Statement, old: Statement) -> bool:
    """Amounts of two kinds of units, or two deeds with what is counted: "Tom sold 40 chairs", "Mia sold 3 tables"."""
    mine, theirs = units_of(new.text), units_of(old.text)
    return mine.isdisjoint(theirs) and (bool(mine and theirs) or report_two_deeds(new, old))


def tells_hour(one: Statement, other: Statement) -> bool:
    """ "Back to seven", where the other says "half past seven"."""
    sorts = one.values.keys()
    return (
        Sort.TIME in other.values and {Sort.TIME, Sort.AMOUNT} & sorts == {Sort.AMOUNT} and bool(HOUR.search(one.text))
    )


def _forbid_each(new: Statement, old: Statement) -> bool:
    """ "Never touch web1" and "never touch web2": of what is forbidden there may be any number."""
    mine = new.signs
    return mine.forbids and old.signs.forbids and not (mine.changes or mine.opens)
