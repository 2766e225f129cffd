"""The values by which the driver decides, read from the database. PURE."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from health.compaction.terms.pressure import Pressure
from health.compaction.terms.reasons import Reason
from health.monitor.remediation import Due

# The most compactions for one request; and in one turn, of those that follow another with hardly any growth between.
MAX_RESTARTS = 3


@dataclass(frozen=True, kw_only=True)
class Policy:
    """How often a provider failure is tried again, the longest wait (seconds), and the most rounds of tools and
    automatic prompts after a person's last message.

    In autonomous mode nobody presses *Retry*: it is tried again for `outage_seconds`, with waits up to `outage_wait`.
    """

    attempts: int = 3
    base_seconds: float = 2.0
    max_seconds: float = 60.0
    outage_seconds: float = 24 * 3600.0
    outage_wait: float = 15 * 60.0
    interruptions: int = 3
    tool_rounds: int = 25
    # Each prompt allows this many more rounds, because reminders are written with tools.
    rounds_a_prompt: int = 2
    # The most rounds in a row without a call that can be made: a model that was told three times what is wrong with its
    # calls, or which tools there are, does not get it right the fourth time.
    rounds_in_vain: int = 3
    prompts: int = 20


class Leaf(StrEnum):
    """The kind of the newest message of the branch."""

    NONE = "none"
    TYPED = "typed"
    # A remediation prompt, a push, or the first message of a course: role user, but not typed.
    INSERTED = "inserted"
    ANSWER = "answer"
    RESULT = "result"


@dataclass(frozen=True, kw_only=True)
class Guarding:
    """How full the next request would be, estimated, where the dialog has a guard.

    `compactions` counts the runs for this request, and those of the turn that followed another with hardly any growth
    between. `vain`: the last run freed nothing, and the context has not grown since by a tenth of the room. `stuck`:
    why compaction cannot free more of a request that fits. `refused`: why no request can be made, however much is
    compacted. `running`: a run is under way, perhaps started by hand.
    """

    pressure: Pressure
    # What `pressure` compares: the request with the answer's reserve, and the tokens that count as 100 %.
    tokens: int = 0
    limit: int = 0
    compactions: int = 0
    # One of these compactions was made for the newest message.
    tried: bool = False
    vain: bool = False
    # A run was applied a request or two ago, and this request still fits with the minimal answer. Or the last run freed
    # all it could, and the context has hardly grown since.
    spared: bool = False
    stuck: Reason | None = None
    running: bool = False
    refused: Reason | None = None
    # A person's last message is so much of the refused request that a new course would be refused too.
    alone: Reason | None = None
    # A run was applied after the last failed try.
    relieved: bool = False
    # A person undid a compaction and has said nothing since: a request that fits is not compacted again.
    held: bool = False
    # Automatic compaction is off; what the server would cut silently is refused instead.
    off: bool = False


@dataclass(frozen=True, kw_only=True)
class State:
    """One dialog between two actions.

    `failures` and `interruptions` count the tries of the answer that is due now. `retry_in`: the seconds left before
    the next try; None without a wait. `round_open`: the newest answer's calls do not all have results yet; `rounds`
    counts answers with calls, and `prompts` the automatic prompts, since a person's last message or the last push.
    `waiting_for_person`: only a person's answer is missing.
    """

    answer_due: bool
    stop_requested: bool = False
    trashed: bool = False
    paused: bool = False
    failures: int = 0
    interruptions: int = 0
    retry_in: float | None = None
    # The last try was refused, as the prompt is longer than the window.
    overflowed: bool = False
    # The last try filled the window before the answer had any text.
    filled: bool = False
    queued: int = 0
    leaf: Leaf = Leaf.TYPED
    round_open: bool = False
    waiting_for_person: bool = False
    rounds: int = 0
    # After results: how many of the newest of these answers, in a row, held only calls that could not be made.
    in_vain: int = 0
    prompts: int = 0
    due: Due = Due.NOTHING
    # The agent is prompted for reminders first: its history is compacted only if the next request would not fit.
    reminds: bool = False
    # Autonomous mode: a run is under way; its generations are used up.
    autonomous: bool = False
    run_used_up: bool = False
    # The account of the run's owner is switched off.
    owner_off: bool = False
    # The newest message asks to go on with an answer that was cut for a compaction.
    continuing: bool = False
    # Enough calls were made since the last check that the agent may be in a loop.
    loop_check_due: bool = False
    # A client drives it: only what it requests is done.
    client_driven: bool = False
    # None: the dialog has no guard, and no request is ever changed.
    guard: Guarding | None = None


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A failed generation. `retry_after`: the provider's Retry-After in seconds. `failing_for`: seconds since the first
    try of this answer failed, in autonomous mode; else None."""

    retryable: bool
    retry_after: float | None = None
    failing_for: float | None = None


# After this many doublings any base exceeds any longest wait.
MOST_DOUBLINGS = 60


def doubled(*, failures: int, base: float, most: float) -> float:
    """The base in seconds, doubled for each earlier failure up to the longest wait."""
    return min(most, base * 2.0 ** min(failures - 1, MOST_DOUBLINGS))


def backoff(*, failures: int, base: float, most: float, wished: float | None, share: float = 1.0) -> float | None:
    """Seconds until the next try after so many failures, or None to give up.

    A share of the doubled base. A server's Retry-After is never undercut; one longer than the longest wait ends the
    tries.
    """
    wished = wished or 0.0
    if wished > most:
        return None
    return max(wished, share * doubled(failures=failures, base=base, most=most))
