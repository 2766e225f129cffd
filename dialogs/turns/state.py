"""What the driver knows when it decides: plain values read from the database. PURE."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from health.compaction.terms.pressure import Pressure
from health.compaction.terms.reasons import Reason
from health.monitor.remediation import Due

# The most compactions of one request; and of one turn, where hardly anything came between them.
MAX_RESTARTS = 3


@dataclass(frozen=True, kw_only=True)
class Policy:
    """How often a provider failure is tried again, how long the waits may grow (seconds), and how many rounds of tools
    and how many automatic prompts may follow what a person said last.

    An agent on its own has nobody who would press *Retry*: it goes on trying for `outage_seconds`, after waits that
    grow up to `outage_wait`.
    """

    attempts: int = 3
    base_seconds: float = 2.0
    max_seconds: float = 60.0
    outage_seconds: float = 24 * 3600.0
    outage_wait: float = 15 * 60.0
    interruptions: int = 3
    tool_rounds: int = 25
    # Each prompt allows so many more rounds, because reminders are written with tools.
    rounds_a_prompt: int = 2
    # So many rounds of calls that cannot be made, one after the other: a model that was told three times what is wrong
    # with its JSON, or which tools there are, does not learn it by the fourth.
    rounds_in_vain: int = 3
    prompts: int = 20


class Leaf(StrEnum):
    """What the newest message of the branch is."""

    NONE = "none"
    TYPED = "typed"
    # A remediation prompt, a push, or the opening of a course: role user, but nobody typed it.
    INSERTED = "inserted"
    ANSWER = "answer"
    RESULT = "result"


@dataclass(frozen=True, kw_only=True)
class Guarding:
    """How full the next request would be, estimated, where the dialog has a guard.

    `compactions` counts the runs made for this request, and those of the turn that followed another with hardly
    anything between. `vain`: the last run gained nothing, and the context has not grown since by a tenth of the room.
    `stuck` says why compaction cannot free more of a request that fits. `refused` says why none can be made, however
    much is compacted. `running`: a run is under way, perhaps by hand.
    """

    pressure: Pressure
    # What the pressure was told from: the request with the answer's reserve, and what counts as 100 %.
    tokens: int = 0
    limit: int = 0
    compactions: int = 0
    # One of these compactions was made for the newest message.
    tried: bool = False
    vain: bool = False
    # Something was compacted a request or two ago, and this one still fits with the least answer.
    spared: bool = False
    stuck: Reason | None = None
    running: bool = False
    refused: Reason | None = None
    # What a person said last is so much of the refused request that a new course would be refused as well.
    alone: Reason | None = None
    # The last failed try was answered by a compaction that holds.
    relieved: bool = False
    # A person undid a compaction and has said nothing since: what fits is sent as they want it.
    held: bool = False
    # Nothing is compacted by itself here; what the server would cut without a word is refused instead.
    off: bool = False


@dataclass(frozen=True, kw_only=True)
class State:
    """One dialog between two actions.

    `failures` and `interruptions` count the tries of the answer that is now due, not those of earlier ones.
    `retry_in` is what is left of the wait before the next try, in seconds; None when none is under way.
    `round_open`: the newest answer made calls whose results are not all there; `rounds` counts such answers, and
    `prompts` the automatic prompts, since a person spoke or a run pushed on. `waiting_for_person`: all that is missing
    is a person's answer.
    """

    answer_due: bool
    stop_requested: bool = False
    trashed: bool = False
    paused: bool = False
    failures: int = 0
    interruptions: int = 0
    retry_in: float | None = None
    # The last try was refused because the prompt is longer than the window.
    overflowed: bool = False
    # The last try filled the window before a word was said.
    filled: bool = False
    queued: int = 0
    leaf: Leaf = Leaf.TYPED
    round_open: bool = False
    waiting_for_person: bool = False
    rounds: int = 0
    # How many of the newest of these answers, in a row, made only calls whose arguments cannot be read or whose tool
    # does not exist.
    in_vain: int = 0
    prompts: int = 0
    due: Due = Due.NOTHING
    # The agent is to be reminded first: its history is compacted only where the next request would not fit.
    reminds: bool = False
    # Autonomous mode: a run is under way; its generations are used up.
    autonomous: bool = False
    run_used_up: bool = False
    # The account of the run's owner is switched off.
    owner_off: bool = False
    # The newest message asks to go on with an answer that was cut for a compaction.
    continuing: bool = False
    # So much was done since the last look that the agent may go round in circles.
    loop_check_due: bool = False
    # A client drives it: what it does not ask for is not done, whatever is due.
    client_driven: bool = False
    # None: nobody is guarded, and no request is ever touched.
    guard: Guarding | None = None


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A generation that failed. `retry_after` is the provider's own wish, in seconds. `failing_for`: so long ago the
    first try of this answer failed, where an agent goes on by itself; None where a person waits."""

    retryable: bool
    retry_after: float | None = None
    failing_for: float | None = None


# After so many doublings every base exceeds every longest wait.
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
