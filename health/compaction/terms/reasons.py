"""Why the engine did something or did not: a code with arguments, and the table of the sentences they make.

`str(reason)` is the English sentence, for logs and programs. A page says it in its reader's language by handing gettext
to `in_language`. A new reason is one line in the table; `tests/health/compaction/terms/test_reasons.py` asks for its
Chinese. Every hole of a sentence is an argument: a number, a name, another reason, or a list of reasons. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from math import isfinite
from typing import Any, Union


def _(sentence: str) -> str:
    """Targets a sentence that is translated when it is shown."""
    return sentence


class Why(Enum):
    """Every reason there is. Rows hold a name in small letters for ever: one that is stored is never renamed."""

    # Where a limit comes from.
    LOADED = _("loaded in LM Studio")
    AGENTS_LIMIT = _("set for this agent")
    TYPES_LIMIT = _("set for %(name)s")
    P1_AGENT = _("20 % more")
    LEAST_LIMIT = _("the least that is allowed (min_limit)")
    DEFAULT_LIMIT = _("default_limit in the settings")
    FOLLOWED_LIMIT = _("default_limit, which %(name)s follows")
    WINDOW_LESS_ANSWER = _("the window of %(window)s less %(reserve)s for the answer")

    FROM_SERVER = _("read from the server")
    FROM_CATALOGUE = _("from the catalogue file")
    FROM_ADMIN = _("set by an admin")
    FROM_REFUSAL = _("learned from a refusal")
    INPUT_LENGTH = _("its input length")
    WRITTEN_DOWN = _("as written down")
    LEARNED_BOUND = _("learned from what was read and refused")
    KEPT_FOR_ANSWER = _("%(answer)s kept for the answer")
    LARGEST_READ = _("the largest prompt that it has read")
    # A limit that nobody has written down, as sentences name it.
    LIMIT_GUESSED = _("≈%(tokens)s (guessed from what the server refused)")
    LIMIT_LEARNED = _("%(tokens)s (learned from what the server read and refused)")

    # Why a request cannot be made. Each is about the request: its sizes, and what takes the room.
    CANNOT_FREE_MORE = _(
        "What must stay needs ≈%(needed)s tokens, the limit is %(limit)s. The largest: %(shares)s. To go on, %(ways)s, "
        "or choose a larger limit or model."
    )
    P1_ALONE = _(
        "P1 alone needs ≈%(needed)s tokens, the limit is %(limit)s. The largest: %(shares)s. To go on, %(ways)s, or "
        "choose a larger limit or model."
    )
    REQUEST_TOO_LARGE = _("The request needs ≈%(tokens)s tokens, and %(limit)s have room.")
    REQUEST_OVER_WINDOW = _("The request needs ≈%(tokens)s tokens, and %(limit)s have room (window %(window)s).")
    REQUEST_REFUSED = _("The request needs ≈%(tokens)s tokens, and the provider refuses it as too long.")
    WORDS_ALONE = _(
        "The request needs ≈%(tokens)s tokens, and the provider refuses it as too long. What you said last takes "
        "≈%(words)s of them: shorten it, or say it in several."
    )
    NOT_HELPED = _("%(why)s %(other)s")
    WOULD_BE_CUT = _(
        "The request needs ≈%(tokens)s tokens, and %(limit)s have room. This server would read only a part of it "
        "without a word, and compaction is switched off. Compact the dialog, or switch compaction on."
    )
    STUCK = _("Compaction cannot free more. %(why)s")
    FULL = _("The answer was ended: the context is full. (≈%(tokens)s of %(window)s tokens)")
    TOO_SMALL = _(
        "Only %(usable)s of %(window)s tokens are usable, fewer than %(least)s: load the model with a larger context."
    )
    LIMIT_TOO_SMALL = _(
        "Only %(usable)s tokens are usable, fewer than %(least)s: load the model with a larger context."
    )

    # What takes the room, and what helps against it.
    SHARE = _("%(why)s ≈%(tokens)s tokens")
    SHARE_OF = _("%(why)s (%(name)s) ≈%(tokens)s tokens")
    P1 = _("P1")
    PINNED = _("pinned")
    SYSTEM_PROMPT = _("system prompt")
    OVERHEAD = _("tool schemas and other overhead")
    OPEN_ROUND = _("open round")
    USERS_WORDS = _("user's words")
    HELD_ROUND = _("round of a protected message")
    LOWER_PRIORITY = _("lower the priority of some P1 messages")
    UNPIN = _("unpin messages")
    SHORTEN_SYSTEM_PROMPT = _("shorten the system prompt")
    FEWER_TOOLS = _("offer fewer tools")
    ASK_FOR_LESS = _("ask the tools for less")
    GIVE_A_FILE = _("shorten a long message, or say it in several")
    UNPIN_ROUNDS = _("unpin messages of long rounds")

    RESULT_TOO_LARGE = _(
        "This tool result exceeds the model's context limit: ≈%(tokens)s tokens, and %(room)s have room beside what "
        "must stay. A model with a larger context can read all of it."
    )

    # What must stay and was too much: each step by which it gave way, and who.
    NEWEST_SHORTENED = _(
        "The message that is worked on (%(name)s) was shortened from ≈%(before)s to ≈%(after)s tokens."
    )
    FIRST_REQUEST_SHORTENED = _("The first request (%(name)s) was shortened from ≈%(before)s to ≈%(after)s tokens.")
    NO_LONGER_IN_FORCE = _(
        "What was changed or taken back since was left out of the first request (%(name)s): ≈%(after)s of ≈%(before)s "
        "tokens."
    )
    REMINDERS_SHORTENED = _(
        "Reminders (%(name)s) are told to the agent shortened, ≈%(after)s of ≈%(before)s tokens: all of them may take "
        "a quarter of the room. Nothing that is stored was changed."
    )
    TEXTS_SHORTENED = _("Long texts of the agent (%(name)s) were shortened from ≈%(before)s to ≈%(after)s tokens.")
    RESULTS_SHORTENED = _(
        "Results to be answered next (%(name)s) were shortened from ≈%(before)s to ≈%(after)s tokens."
    )
    ROUND_DIGESTED = _(
        "The calls and results to be answered next (%(name)s) became a digest: ≈%(after)s tokens for ≈%(before)s."
    )
    HEADS_LEFT = _("Only the beginning is left of %(name)s: ≈%(after)s of ≈%(before)s tokens.")
    GONE_ENTIRELY = _("There was no room at all for %(name)s (≈%(before)s tokens, now ≈%(after)s).")
    MARKED_SHORTENED = _("P1 and pinned messages (%(name)s) were shortened from ≈%(before)s to ≈%(after)s tokens.")
    MARKED_LEFT_OUT = _("P1 and pinned messages (%(name)s) were left out: ≈%(after)s tokens are left of ≈%(before)s.")

    # How a run ended.
    REDUCED = _("Context reduced to ≈%(tokens)s / %(limit)s tokens.")
    BEGUN_AFRESH = _("The chat begins afresh with ≈%(tokens)s / %(limit)s tokens.")
    NO_MESSAGES = _("There are no messages.")
    NOTHING_TO_COMPACT = _("Nothing to compact: ≈%(tokens)s of %(limit)s tokens.")
    NOTHING_IN_UNKNOWN = _("Nothing to compact: ≈%(tokens)s tokens. The window is unknown.")
    NOTHING_TO_DO = _("Nothing to do: not above %(share)s of the limit.")
    NO_GAIN = _("Nothing to gain: the chain would free less than %(share)s.")
    TOO_LITTLE_GAIN = _("Nothing to gain: it would free ≈%(share)s.")
    STILL_OVER = _("The chain came to ≈%(tokens)s tokens, the limit is %(limit)s. Nothing was changed.")
    NOT_UNDER = _("The chain did not come under the limit.")
    FAILED_WITHIN = _("It failed from within: %(name)s.")
    UNKNOWN_STRATEGY = _("Unknown strategy: %(name)s")
    WITHOUT_MINILM = _("MiniLM is absent or slow here: the task was matched by its words and by %(name)s vectors.")
    UNREAD = _("Some of what was stated could not be read, and counts as still in force: %(name)s.")
    WENT_ANOTHER_WAY = _("The dialog went another way meanwhile; nothing was changed.")
    DISCARDED = _("A person discarded it; the request goes on without it.")
    UNSOUND_VIEW = _("The file's view of the messages could not be sent to a model; it was left out.")

    # Notes of strategies.
    NOT_SMALLER = _("It would not make the context smaller.")
    FAILED = _("It failed: %(name)s")
    LAW_BROKEN = _("Refused, for a law would be broken: %(why)s.")
    NO_ROOM_FOR_HANDOVER = _("There is no room for a handover.")
    NOTHING_MORE = _("Nothing more can go.")
    ONLY_WHAT_MUST_STAY = _("Only what must stay is left.")
    EVERYTHING_FITS = _("Everything fits.")
    NO_ROOM_FOR_PASSAGES = _("What must stay leaves no room for passages.")
    PASSAGES_NOT_SMALLER = _("Passages would not make it smaller.")
    AT_GOAL = _("already at the goal")
    NOTHING_UNPROTECTED = _("nothing unprotected to drop")
    ONLY_LAST_AND_PROTECTED = _("nothing but the last messages and what is protected")
    LESS_THAN_PLACEHOLDER = _("nothing could be dropped, or less than its placeholder takes")
    NO_FEWER_WORDS = _("nothing could be said in fewer words")
    NO_PAYLOAD = _("no payload that could be trimmed")
    FEW_MESSAGES = _("not more than %(count)s messages")
    TOO_FEW_UNITS = _("too few unprotected units to drop a share of them")
    NO_TASK = _("there is no task to be relevant to")
    BELOW_RELEVANCE = _(
        "%(count)s of %(most)s older rounds went: relevance %(found)s on average, the least that stays is %(least)s"
    )
    ALL_RECENT = _("everything is recent or protected")
    ALL_RELEVANT = _("everything is highly relevant")
    IRRELEVANT_TOO_SMALL = _("what is not relevant is smaller than its placeholders")
    LARGER_THAN_SHARE = _("what could be dropped is larger than the share, or smaller than its placeholder")
    SMALLER_THAN_PLACEHOLDER = _("what could be dropped is smaller than its placeholder")
    TIGHTER_SAVED_NOTHING = _("tighter parameters saved nothing")
    ONE_PASS = _("%(count)s pass")
    PASSES = _("%(count)s passes")
    TRIED_SUMMARY = _("%(why)s; tried summarize_old: %(other)s")
    DONE = _("done")
    NOTHING_OLD = _("nothing old to summarise")
    NO_SUMMARY_FITS = _("no summary fits: %(why)s")
    OLDEST_DROPPED = _("the oldest were dropped instead")
    SUMMARY_NOT_SMALLER = _("the summary is not smaller than its source")
    COHERENCE = _("coherence %(found)s")
    COHERENCE_AND = _("coherence %(found)s. %(why)s")
    COHERENCE_UNDER = _("coherence %(found)s is under %(least)s: %(why)s")
    UNDONE = _("undone: coherence %(found)s is under %(least)s")

    # Why a model's summary was not used.
    SUMMARY_NOT_USED = _("The model's summary was not used: %(why)s.")
    NO_MODEL = _("no model answered")
    EMPTY = _("it is empty")
    REFUSES = _("it refuses")
    NOT_FINISHED = _("it is not finished")
    NOT_SHORTER = _("it is not smaller than what it stands for (≈%(tokens)s tokens for ≈%(source)s)")
    LONGER_THAN_ASKED = _("it is longer than asked (≈%(tokens)s tokens instead of %(most)s)")
    INVENTS = _("it names what its source does not: %(name)s")
    SOMETHING_ELSE = _("it is about something else (coherence %(found)s, at least %(least)s wanted)")

    # The pruning agent.
    NOTHING_OLDER = _("there is nothing older to prune")
    PRUNED_TOO_LITTLE = _("The pruning agent frees ≈%(freed)s, and at least %(wanted)s is wanted.")
    PRUNED = _("≈%(freed)s freed, ≈%(before)s to ≈%(after)s tokens.")
    PRUNED_AND_SAID = _("≈%(freed)s freed, ≈%(before)s to ≈%(after)s tokens. %(said)s")
    PRUNING_NOT_USED = _("The pruning agent's answer was not used: %(why)s.")
    NO_ANSWER = _("there was none")
    ROUND_TOO_LARGE = _("none was asked for, as a round of ≈%(tokens)s tokens is over half the window")
    HALF_A_ROUND = _("it takes half a round away")
    SUMMARY_NOT_TRUSTED = _("a summary cannot be trusted: %(why)s")
    NO_TEXT = _("it is no text, or far too long")
    NO_JSON = _("it is no JSON")
    NO_DECISIONS = _("it holds neither decisions nor a conversation")
    NO_LIST = _("`%(name)s` is no list")
    NO_LIST_OF_IDS = _("`%(name)s` is no list of ids")
    SUMMARY_WITHOUT_TEXT = _("a summary has no text")
    SUMMARY_OF_NOTHING = _("a summary names no message")
    FROM_NOBODY = _("a message comes from nobody who was shown")
    CONTENT_NO_TEXT = _("a message's content is no text")
    STANDS_FOR_NONE = _("it adds a message that stands for none")
    NOT_SHOWN = _("it names %(name)s, which it was not shown")
    DECIDES_TWICE = _("it decides twice about %(name)s")

    # Laws of `invariants`.
    NOTHING_LEFT = _("nothing is left")
    OUT_OF_ORDER = _("%(name)s comes after %(other)s, though it was said before")
    ID_TWICE = _("the id %(name)s stands %(count)s times")
    ROUND_TORN = _("%(name)s lost a part")
    ROUND_INTERRUPTED = _("%(name)s is interrupted")
    UNPAIRED = _("%(count)s calls have %(results)s results, or those of other calls")
    PROTECTED_CHANGED = _("%(name)s is protected and was changed")
    PROTECTED_REMOVED = _("%(name)s is protected and was removed")
    BEFORE_SYSTEM_PROMPT = _("%(name)s stands before the system prompt")

    @property
    def code(self) -> str:
        return self.name.lower()

    @property
    def holes(self) -> frozenset[str]:
        return frozenset(_HOLE.findall(self.value))


Argument = Union[int, float, str, "Reason", tuple["Reason", ...]]
Translate = Callable[[str], str]
_HOLE = re.compile(r"%\((\w+)\)s")
# What is put between the reasons of a list, by the hole it stands in.
BETWEEN = {"shares": _(", "), "ways": _(", or ")}
# How a share and a coherence are written, by the hole they stand in. Whole numbers elsewhere: 1,024.
WRITTEN = {"share": ".0%", "freed": ".0%", "wanted": ".0%", "found": ".2f"}


@dataclass(frozen=True)
class Reason:
    """A code of the table, and an argument for each hole of its sentence. Raises ValueError where they do not fit."""

    why: Why
    args: Mapping[str, Argument] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if self.why.holes != self.args.keys():
            raise ValueError(f"{self.why.code} takes {sorted(self.why.holes)}, not {sorted(self.args)}.")

    def __str__(self) -> str:
        return self.in_language(_)

    @property
    def code(self) -> str:
        return self.why.code

    def in_language(self, translate: Translate) -> str:
        """The sentence, its own words and those of the reasons in it put through `translate`."""
        sentence = translate(self.why.value)
        said = {name: _formatted(name, value, translate) for name, value in self.args.items()}
        return sentence % said if said else sentence

    def as_json(self) -> dict[str, Any]:
        """To be stored. The English sentence goes along: a version that lacks the code shows that."""
        args = {name: _json(value) for name, value in self.args.items()}
        return {"code": self.code, "args": args, "text": str(self)}


def from_json(value: Any) -> Reason | None:
    """The reason that was stored. None for what is none, or none that this version knows."""
    if not isinstance(value, Mapping):
        return None
    try:
        return Reason(Why[str(value["code"]).upper()], {name: _argument(one) for name, one in value["args"].items()})
    except (KeyError, ValueError, AttributeError):
        return None


def text_of(stored: Any) -> str:
    """The English sentence of what is stored: a reason as JSON, or the text of an old row."""
    return str(stored.get("text", "")) if isinstance(stored, Mapping) else str(stored)


def columns_of(why: Reason | None) -> dict[str, Any]:
    """As a row keeps it: the sentence for logs, programs and files, the reason for who translates."""
    return {"reason": str(why or ""), "why": why.as_json() if why else {}}


def _formatted(name: str, value: Argument, translate: Translate) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, Reason):
        return value.in_language(translate)
    if isinstance(value, tuple):
        return translate(BETWEEN.get(name, ", ")).join(one.in_language(translate) for one in value)
    return format(value, WRITTEN.get(name, "," if isinstance(value, int) else "g"))


def _json(value: Argument) -> Any:
    if isinstance(value, Reason):
        return {"code": value.code, "args": {name: _json(one) for name, one in value.args.items()}}
    if isinstance(value, tuple):
        return [_json(one) for one in value]
    # JSON has no word for what is no number.
    return str(value) if isinstance(value, float) and not isfinite(value) else value


def _argument(value: Any) -> Argument:
    """Raises ValueError for what is no argument of any reason."""
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        return value
    nested = [from_json(one) for one in (value if isinstance(value, list) else [value])]
    reasons = tuple(one for one in nested if one is not None)
    if len(reasons) < len(nested):
        raise ValueError(f"{value!r} is no argument of a reason.")
    return reasons if isinstance(value, list) else reasons[0]
