"""What the model still knows of a dialog: rules and facts in play, in its next request, and after a compaction that is
only tried. Estimated; no model is asked, nothing is stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from dialogs.compaction.work import aimed, config_for
from dialogs.context.border import chat_request, read_context
from dialogs.context.carry_over import whole_branch
from dialogs.context.estimate import next_context, present_tokens
from dialogs.context.material import Material, material, units_of
from dialogs.llms.counter import counter_of
from dialogs.llms.guard import by_limit, chain_for, guard_of
from dialogs.models import Course, Dialog, Message
from dialogs.models.message import INSERTED, MessageOrigin
from dialogs.transcript.standing_rules import load, taken_back
from dialogs.turns.reads.turns import dialog_to_drive
from health.adapters import embeddings
from health.compaction.compact import compact
from health.compaction.reading.ledger import Entry, EntryKind, Presence, extract, presence_of
from health.compaction.reading.ledger_page import normal
from health.compaction.runner import run
from health.compaction.terms.outcome import Status
from health.compaction.terms.ports import Answer, Embed, Need
from health.models import CompactionRun

EMBEDDER = "static"
# Larger contexts are not tried, since a person waits; they can have a preview, which a worker makes.
MOST_TOKENS = 200_000
# Origins of messages that Dominds wrote and that repeat what somebody said.
NOBODYS = (*INSERTED, MessageOrigin.HANDOVER)
KINDS = [kind.value for kind in EntryKind]
LEAST_LIMIT, MOST_LIMIT = 256, 10_000_000


@dataclass(frozen=True, kw_only=True)
class EntryPresence:
    """`kind` is the ledger's word; empty for a rule that a person wrote by hand, which has no `source`, and so no
    `course`, which is the number of the source's. `then` is None where no compaction was tried."""

    text: str
    kind: str
    said_at: datetime
    source: Message | None
    course: int | None
    now: Presence
    then: Presence | None


@dataclass(frozen=True, kw_only=True)
class StillKnown:
    """Rules first, facts last, the newest of each kind first.

    `then_tokens` is None where no compaction was tried, where it `is_too_large` to be tried, and where one
    `comes_to_nothing`: there is hardly anything to free, or what must stay does not fit.
    """

    known: tuple[EntryPresence, ...]
    now_tokens: int
    then_tokens: int | None
    is_too_large: bool = False
    comes_to_nothing: bool = False

    @property
    def now(self) -> dict[str, int]:
        return _counted(one.now for one in self.known)

    @property
    def then(self) -> dict[str, int] | None:
        found = [one.then for one in self.known if one.then is not None]
        return _counted(found) if self.then_tokens is not None else None


def still_known(dialog: Dialog, *, compacted: bool = False, limit: int | None = None) -> StillKnown:
    """`compacted`: and after *Compact now…*, or where a limit is given, after a compaction for that one."""
    fresh = dialog_to_drive(dialog.pk)
    if fresh.current_leaf is None:
        return StillKnown(known=(), now_tokens=0, then_tokens=None)
    tokens = present_tokens(fresh)
    wanted, is_too_large = compacted or limit is not None, tokens > MOST_TOKENS
    tried = _tried(fresh, limit) if wanted and not is_too_large else None
    return StillKnown(
        known=tuple(sorted(_known(fresh, then=tried[0] if tried else None), key=_worth)),
        now_tokens=tokens,
        then_tokens=tried[1] if tried else None,
        is_too_large=wanted and is_too_large,
        comes_to_nothing=wanted and not is_too_large and tried is None,
    )


def _worth(one: EntryPresence) -> tuple[int, float]:
    return KINDS.index(one.kind or EntryKind.RULE.value), -one.said_at.timestamp()


def _known(dialog: Dialog, *, then: str | None) -> Iterator[EntryPresence]:
    branch = whole_branch(dialog)
    said = {str(message.pk): message for message in branch if message.origin not in NOBODYS}
    now, by_hand = _text_of_request(dialog), load(dialog.standing_rules)
    for rule in by_hand:
        if rule.holds:
            # The rule stands among the instructions, which no compaction touches.
            stands = Presence.KEPT if rule.text in now else Presence.GONE
            after = None if then is None else Presence.KEPT
            yield EntryPresence(
                text=rule.text, kind="", said_at=rule.at, source=None, course=None, now=stands, then=after
            )
    courses = dict(Course.objects.filter(dialog=dialog).values_list("pk", "number"))
    written = {rule.key for rule in by_hand}
    for entry in _entries(dialog, branch, said):
        if (source := said.get(entry.source_id)) and normal(entry.text) not in written:
            yield EntryPresence(
                text=entry.text,
                kind=entry.kind.value,
                said_at=source.created_at,
                source=source,
                course=courses[source.course_id],
                now=presence_of(entry, now),
                then=None if then is None else presence_of(entry, then),
            )


def _entries(dialog: Dialog, branch: tuple[Message, ...], said: Container[str]) -> Iterable[Entry]:
    units = units_of(read_context(dialog, branch).whole(), counter_of(dialog.llm))
    return extract([unit for unit in units if unit.id in said], taken_back(load(dialog.standing_rules)))


def _text_of_request(dialog: Dialog) -> str:
    messages = chat_request(next_context(dialog)).messages
    calls = (call.arguments for message in messages for call in message.tool_calls)
    return "\n".join([*(message.content for message in messages), *calls])


def _tried(dialog: Dialog, limit: int | None) -> tuple[str, int] | None:
    """What the model would read after a compaction, and how much that is; None where it would come to nothing."""
    begun, chain = _begun(dialog, limit)
    outcome = run(compact(begun.state, begun.kit, chain=chain, judge=False), answer=_answer)
    if outcome.status is not Status.APPLIED:
        return None
    state = outcome.state
    calls = (call.arguments for unit in state.units for call in unit.calls)
    return "\n".join([*(unit.content for unit in state.units), *calls]), state.estimated_tokens


def _begun(dialog: Dialog, limit: int | None) -> tuple[Material, tuple[str, ...]]:
    """The material of a run as *Compact now…* begins it, or the guard under that limit. The run is not stored."""
    guard = guard_of(dialog) or by_limit(dialog)
    wish = CompactionRun(
        dialog=dialog,
        leaf=dialog.current_leaf,
        trigger=CompactionRun.Trigger.PRE_REQUEST if limit else CompactionRun.Trigger.MANUAL,
        limit_tokens=limit or guard.limit or present_tokens(dialog),
        reserve_tokens=0 if limit else guard.reserve,
    )
    begun = material(wish, config_for(wish))
    if limit is None:
        return aimed(wish, begun), chain_for(guard.config)
    config = replace(begun.state.config, warning_threshold=0)
    return replace(begun, state=replace(begun.state, config=config)), chain_for(guard.config)


def _answer(need: Need) -> Answer:
    return embeddings.embedder(EMBEDDER)(need) if isinstance(need, Embed) else None


def _counted(found: Iterable[Presence]) -> dict[str, int]:
    counts = Counter(found)
    return {one.value: counts[one] for one in Presence}
