"""Why the engine did something or did not, in the reader's language.

A reason is stored as the English sentence, with its numbers: so the log, programs and exported files read it. Here
stands the table of these sentences with holes, as gettext wants them; the one that fits is translated when it is
shown. Rows of old runs are found too: they lack the `≈` of estimates, which is put where it belongs.
"""

from __future__ import annotations

import re
from functools import cache

from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _

# Holes for words, which may be reasons themselves. All others are numbers.
WORDS = frozenset({"why", "said", "name", "other", "shares", "ways"})
# What some of them are put together with.
LISTS = {"shares": _(", "), "ways": _(", or ")}
HOLE = re.compile(r"%\((\w+)\)s")

LIMITS = (
    _("loaded in LM Studio"),
    _("set for this agent"),
    _("20 % more"),
    _("the least that is allowed (min_limit)"),
    _("default_limit in the settings"),
    _("default_limit, which %(name)s follows"),
    _("the window of %(window)s less %(reserve)s for the answer"),
    _("Only %(usable)s of %(window)s tokens are usable, fewer than %(least)s: load the model with a larger context."),
    _("Only %(usable)s tokens are usable, fewer than %(least)s: load the model with a larger context."),
    _(
        "The tool's result (≈%(tokens)s tokens) exceeds the model's context limit: of %(limit)s tokens ≈%(room)s are "
        "left for it. Compaction cannot help. Ask for less, or use a model with a larger context."
    ),
    _("The answer was ended: the context is full. (≈%(tokens)s of %(window)s tokens)"),
)
FLOOR = (
    _(
        "P1 alone needs ≈%(needed)s tokens, the limit is %(limit)s. The largest: %(shares)s. To go on, %(ways)s, or "
        "choose a larger limit or model."
    ),
    _(
        "What must stay needs ≈%(needed)s tokens, the limit is %(limit)s. The largest: %(shares)s. To go on, %(ways)s, "
        "or choose a larger limit or model."
    ),
    _("P1"),
    _("pinned"),
    _("system prompt"),
    _("tool schemas and other overhead"),
    _("open round"),
    _("user's words"),
    _("round of a protected message"),
    _("lower the priority of some P1 messages"),
    _("unpin messages"),
    _("shorten the system prompt"),
    _("offer fewer tools"),
    _("ask the tools for less"),
    _("give a long message as a file"),
    _("unpin messages of long rounds"),
)
RUNS = (
    _("Context reduced to ≈%(tokens)s / %(limit)s tokens."),
    _("Nothing to do: not above %(share)s of the limit."),
    _("Nothing to gain: it would free ≈%(share)s."),
    _("Nothing to gain: the chain would free less than %(share)s."),
    _("The chain came to ≈%(tokens)s tokens, the limit is %(limit)s. Nothing was changed."),
    _("The chain did not come under the limit."),
    _("It failed from within: %(name)s."),
    _("Unknown strategy: %(name)s"),
    _("The dialog went another way meanwhile; nothing was changed."),
    _("A person discarded it; the request goes on without it."),
    _("The dialog went another way meanwhile. Compact it again."),
    _("The file's view of the messages could not be sent to a model; it was left out."),
)
STRATEGIES = (
    _("It would not make the context smaller."),
    _("It failed: %(name)s"),
    _("Refused, for a law would be broken: %(why)s."),
    _("There is no room for a handover."),
    _("Nothing more can go."),
    _("Only what must stay is left."),
    _("Everything fits."),
    _("What must stay leaves no room for passages."),
    _("Passages would not make it smaller."),
    _("already at the goal"),
    _("nothing unprotected to drop"),
    _("nothing but the last messages and what is protected"),
    _("nothing could be dropped, or less than its placeholder takes"),
    _("nothing could be said in fewer words"),
    _("no payload that could be trimmed"),
    _("not more than %(count)s messages"),
    _("too few unprotected units to drop a share of them"),
    _("there is no task to be relevant to"),
    _("everything is recent or protected"),
    _("everything is highly relevant"),
    _("what is not relevant is smaller than its placeholders"),
    _("what could be dropped is larger than the share, or smaller than its placeholder"),
    _("what could be dropped is smaller than its placeholder"),
    _("tighter parameters saved nothing"),
    _("%(count)s pass"),
    _("%(count)s passes"),
)
SUMMARIES = (
    _("%(why)s; tried summarize_old: %(other)s"),
    _("undone: coherence %(found)s is under %(least)s"),
    _("coherence %(found)s is under %(least)s: %(why)s"),
    _("coherence %(found)s. %(why)s"),
    _("coherence %(found)s."),
    _("coherence %(found)s"),
    _("done"),
    _("no summary fits: %(why)s"),
    _("the oldest were dropped instead"),
    _("nothing old to summarise"),
    _("the summary is not smaller than its source"),
    _("The model's summary was not used: %(why)s."),
    _("no model answered"),
    _("it is empty"),
    _("it refuses"),
    _("it is not finished"),
    _("it is not smaller than what it stands for (≈%(tokens)s tokens for ≈%(source)s)"),
    _("it is longer than asked (≈%(tokens)s tokens instead of %(most)s)"),
    _("it names what its source does not: %(name)s"),
    _("it is about something else (coherence %(found)s, at least %(least)s wanted)"),
)
PRUNING = (
    _("there is nothing older to prune"),
    _("The pruning agent frees ≈%(freed)s, and at least %(least)s is wanted."),
    _("≈%(freed)s freed, ≈%(before)s to ≈%(after)s tokens. %(said)s"),
    _("≈%(freed)s freed, ≈%(before)s to ≈%(after)s tokens."),
    _("The pruning agent's answer was not used: %(why)s."),
    _("there was none"),
    _("none was asked for, as a round of ≈%(tokens)s tokens is over half the window"),
    _("it takes half a round away"),
    _("a summary cannot be trusted: %(why)s"),
    _("it is no text, or far too long"),
    _("it is no JSON"),
    _("it holds neither decisions nor a conversation"),
    _("`%(name)s` is no list"),
    _("`%(name)s` is no list of ids"),
    _("a summary has no text"),
    _("a summary names no message"),
    _("a message comes from nobody who was shown"),
    _("a message's content is no text"),
    _("it adds a message that stands for none"),
    _("it names %(name)s, which it was not shown"),
    _("it decides twice about %(name)s"),
)
LAWS = (
    _("nothing is left"),
    _("%(name)s comes after %(other)s, though it was said before"),
    _("the id %(name)s stands %(count)s times"),
    _("%(name)s lost a part"),
    _("%(name)s is interrupted"),
    _("%(count)s calls have %(results)s results, or those of other calls"),
    _("%(name)s is protected and was changed"),
    _("%(name)s is protected and was removed"),
    _("%(name)s stands before the system prompt"),
)
# Last: these would fit much else.
SHARES = (_("%(why)s (%(name)s) ≈%(tokens)s tokens"), _("%(why)s ≈%(tokens)s tokens"))

SENTENCES = (*LIMITS, *FLOOR, *RUNS, *STRATEGIES, *SUMMARIES, *PRUNING, *LAWS, *SHARES)


def in_words(reason: str) -> str:
    """The reason as its reader says it. A text that no sentence fits is shown as it is."""
    for sentence in SENTENCES:
        if found := _pattern(sentence).fullmatch(reason):
            values = {name: _value(name, text) for name, text in found.groupdict().items()}
            return gettext(sentence) % values if values else gettext(sentence)
    return reason


def _value(name: str, text: str) -> str:
    if name in LISTS:
        between = LISTS[name]
        return gettext(between).join(map(in_words, text.split(between)))
    return in_words(text) if name in WORDS else text


@cache
def _pattern(sentence: str) -> re.Pattern[str]:
    """Fits the sentence with its holes filled. Text stands at the even places, names of holes at the odd ones."""
    parts = HOLE.split(sentence)
    texts = [re.escape(text).replace("≈", "≈?") for text in parts[::2]]
    holes = [f"(?P<{name}>{'.+' if name in WORDS else r'[-0-9.,%]+'})" for name in parts[1::2]]
    return re.compile("".join(part for pair in zip(texts, [*holes, ""], strict=True) for part in pair), re.DOTALL)
