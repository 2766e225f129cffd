"""The critic's proposals (an agent's limit, the order of the chain): made, accepted, dismissed, undone. Nothing changes
before a person accepts.

Accepting and undoing write to the audit trail, and refuse where somebody has changed the value since.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from math import ceil
from time import monotonic
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from dialogs.common.errors import DialogError
from dialogs.compaction.reads.compaction import BY_ITSELF
from dialogs.compaction.settings.checking import faults_of
from dialogs.compaction.writes.context_settings import save_settings
from dialogs.context.estimate import growth_of
from dialogs.learning.reads.proposals import least_limit, most_limit
from dialogs.llms.guard import by_limit, config_of, guard_of, has_limit, room_of
from dialogs.models import Agent, Dialog
from dialogs.models.provider import ProviderKind
from health.compaction.config import PASSAGES, TRIM, ContextConfig
from health.configured import ONLY, context_config, context_settings
from health.critic.chains import Chain, ChainChange, GainEstimate, RewardedRun, chain_change
from health.critic.replay import (
    COHERENCE_DROP,
    LEAST,
    LEAST_COHERENCE,
    WINDOW,
    Finding,
    Growth,
    LimitChange,
    PastEvent,
    Rules,
    Subject,
    findings,
    limit_change,
)
from health.limits import P1_FACTOR_PERCENT
from health.models import CompactionRun, ContextEvent, ContextSettings, Proposal, SettingsChange

Kind, Status = Proposal.Kind, Proposal.Status
# How long a declined proposal is not made again.
QUIET = timedelta(days=7)
# How long all replays may take together when the beat makes proposals; nobody waits for it.
SECONDS = 60.0


def make_proposals(*, now: datetime | None = None, seconds: float = SECONDS) -> list[Proposal]:
    """Make proposals from the last day's events and the stored runs, for at most so many seconds; the new ones."""
    now, until = now or timezone.now(), monotonic() + seconds
    limits = [_propose_limit(agent, found, until) for agent, found in _troubled(now, until)]
    return [proposal for proposal in (*limits, _propose_chain(now)) if proposal]


def _troubled(now: datetime, until: float) -> Iterator[tuple[Agent, list[Finding]]]:
    """Agents with a pattern of events since the last decision about them, the most frequent pattern first."""
    settled = dict(_settled())
    heard = (one for one in happened(now) if one.agent_id not in settled or one.at > settled[one.agent_id])
    found = findings(heard, now=now)
    for agent_id in dict.fromkeys(one.agent_id for one in found):
        agent = Agent.objects.select_related("llm__provider").filter(pk=agent_id, enabled=True).first()
        if agent is not None and monotonic() < until:
            yield agent, [one for one in found if one.agent_id == agent_id]


def _settled() -> Iterator[tuple[int, datetime]]:
    """(agent, moment), oldest decision first: only later events are a reason for another proposal."""
    decided = Proposal.objects.filter(kind=Kind.LIMIT, decided_at__isnull=False).order_by("decided_at")
    for agent_id, status, at in decided.values_list("agent_id", "status", "decided_at"):
        if agent_id is not None and at is not None:
            yield agent_id, at if status == Status.ACCEPTED else at + QUIET


def _propose_limit(agent: Agent, found: Collection[Finding], until: float) -> Proposal | None:
    subject = subject_of(agent, config_of(Dialog(agent=agent, llm=agent.llm)), until=until)
    change = limit_change(subject, found) if subject else None
    if subject is None or change is None:
        return None
    evidence = {"findings": {one.code: one.count for one in found}, "dialogs": len(subject.growths)}
    with transaction.atomic():
        # Locked, so that two processes make no two proposals.
        row = Agent.objects.select_for_update(of=("self",)).select_related("llm__provider").get(pk=agent.pk)
        if Proposal.objects.filter(kind=Kind.LIMIT, agent=row, status=Status.OPEN).exists():
            return None
        return _open(
            Kind.LIMIT,
            agent=row,
            before=limit_in_force(row),
            after={"limit": change.after},
            evidence=evidence,
            expected=_replayed(change),
        )


def _replayed(change: LimitChange) -> dict[str, list[int]]:
    """Each number of the replay by name: [with the limit in force, with the proposed one]."""
    return {name: [value, getattr(change.then, name)] for name, value in vars(change.now).items()}


def _propose_chain(now: datetime) -> Proposal | None:
    order = context_config().chain_order
    change = chain_change(runs(now), before=configured(order))
    if change is None:
        return None
    with transaction.atomic():
        ContextSettings.objects.get_or_create(pk=ONLY)
        ContextSettings.objects.select_for_update().get(pk=ONLY)
        after = {"chain": list(change.after)}
        if _is_known(after, now):
            return None
        return _open(
            Kind.CHAIN,
            before={"chain": list(order)},
            after=after,
            evidence=_by_llm(change),
            expected=_gain(change.gain),
        )


def _is_known(after: Mapping[str, Any], now: datetime) -> bool:
    """Whether a proposal for the chain is open, or this very order was declined lately."""
    chains = Proposal.objects.filter(kind=Kind.CHAIN)
    declined = chains.exclude(status=Status.ACCEPTED).filter(decided_at__gt=now - QUIET)
    return chains.filter(status=Status.OPEN).exists() or any(one.after == after for one in declined)


def _by_llm(change: ChainChange) -> dict[str, Any]:
    gain = change.gain
    llms = {llm: _gain(estimate) for llm, estimate in change.by_llm.items()}
    return {"runs": gain.runs, "runs_before": gain.runs_of_baseline, "llms": llms}


def _gain(estimate: GainEstimate) -> dict[str, float]:
    return {name: round(getattr(estimate, name), 3) for name in ("difference", "lower", "upper")}


def _open(kind: str, *, after: dict[str, Any], **fields: Any) -> Proposal:
    check_change(kind, after)
    return Proposal.objects.create(kind=kind, after=after, **fields)


@transaction.atomic
def accept(*, proposal_id: int, by: User, change: Mapping[str, Any] | None = None) -> Proposal:
    """Put a proposal into force, or `change` in its place. Raises a DialogError that says why not."""
    row = _locked(proposal_id, Status.OPEN)
    chosen = dict(row.after if change is None else change)
    try:
        check_change(row.kind, chosen)
    except NotProposable as error:
        raise DialogError(_("This cannot be proposed.")) from error
    (apply_limit if row.kind == Kind.LIMIT else apply_chain)(row, chosen, by=by)
    row.accepted = chosen
    return _decide(row, Status.ACCEPTED, by)


@transaction.atomic
def dismiss(*, proposal_id: int, by: User) -> Proposal:
    return _decide(_locked(proposal_id, Status.OPEN), Status.DISMISSED, by)


@transaction.atomic
def undo(*, proposal_id: int, by: User) -> Proposal:
    """Restore what was in force before, if nobody has changed it since."""
    row = _locked(proposal_id, Status.ACCEPTED)
    (restore_limit if row.kind == Kind.LIMIT else restore_chain)(row, by=by)
    return _decide(row, Status.UNDONE, by)


def _locked(proposal_id: int, status: str) -> Proposal:
    row = Proposal.objects.select_for_update().filter(pk=proposal_id, status=status).first()
    if row is None:
        raise DialogError(_("Somebody has decided about this proposal already."))
    return row


def _decide(row: Proposal, status: str, by: User) -> Proposal:
    row.status, row.decided_by, row.decided_at = status, by, timezone.now()
    row.save()
    return row


def limit_in_force(agent: Agent) -> dict[str, Any]:
    """The agent's limit by its settings, and its own two fields, as a proposal stores them."""
    one = Dialog(agent=agent, llm=agent.llm)
    chosen = by_limit(one).trace[0].tokens
    return {"limit": chosen, "own": agent.context_limit, "is_on": agent.context_budget}


def apply_limit(proposal: Proposal, change: Mapping[str, Any], *, by: User) -> None:
    agent = _agent(proposal)
    if limit_in_force(agent) != proposal.before:
        raise DialogError(_("The limit was changed meanwhile. Dismiss this proposal and look again."))
    least, most = least_limit(agent), most_limit(agent)
    if most is None or not least <= change["limit"] <= most:
        words = _("The limit must be from %(least)s to %(most)s: the window less what is kept for the answer.")
        raise DialogError(words % {"least": f"{least:,}", "most": f"{most or 0:,}"})
    _set_limit(agent, own=change["limit"], is_on=True, by=by)


def restore_limit(proposal: Proposal, *, by: User) -> None:
    agent = _agent(proposal)
    if (agent.context_limit, agent.context_budget) != (proposal.accepted["limit"], True):
        raise DialogError(_("Somebody has changed it since. Nothing was undone."))
    _set_limit(agent, own=proposal.before["own"], is_on=proposal.before["is_on"], by=by)


def _agent(proposal: Proposal) -> Agent:
    return Agent.objects.select_for_update(of=("self",)).select_related("llm__provider").get(pk=proposal.agent_id or 0)


def _set_limit(agent: Agent, *, own: int | None, is_on: bool, by: User) -> None:
    for name, value in (("context_limit", own), ("context_budget", is_on)):
        before = getattr(agent, name)
        if before != value:
            key = f"agents.{agent.slug}.{name}"
            SettingsChange.objects.create(changed_by=by, key=key, before=_text(before), after=_text(value))
            setattr(agent, name, value)
    agent.save(update_fields=["context_limit", "context_budget"])


def _text(value: object) -> str:
    return "" if value is None else str(value).lower()


def apply_chain(proposal: Proposal, change: Mapping[str, Any], *, by: User) -> None:
    if list(context_config().chain_order) != proposal.before["chain"]:
        raise DialogError(_("The chain was changed meanwhile. Dismiss this proposal and look again."))
    _set_chain(change["chain"], by=by)


def restore_chain(proposal: Proposal, *, by: User) -> None:
    if list(context_config().chain_order) != proposal.accepted["chain"]:
        raise DialogError(_("Somebody has changed it since. Nothing was undone."))
    _set_chain(proposal.before["chain"], by=by)


def _set_chain(chain: list[str], *, by: User) -> None:
    config, row = replace(context_config(), chain_order=tuple(chain)), context_settings()
    fault = next(faults_of(config), None)
    if fault:
        raise DialogError(fault[1])
    save_settings(config=config, pruning_agent=row.pruning_agent, by=by, version=row.version)


class NotProposable(ValueError):
    """The critic may not change this."""


def check_change(kind: str, change: Mapping[str, Any]) -> None:
    """Raises NotProposable where a change has another key than its kind's, or an unfit value."""
    if kind not in Kind.values or set(change) != {kind}:
        raise NotProposable(f"{kind}: {', '.join(map(str, change)) or 'nothing'} cannot be proposed.")
    value = change[kind]
    is_fit = _is_limit(value) if kind == Kind.LIMIT else _is_chain(value)
    if not is_fit:
        raise NotProposable(f"{kind}: {value!r} cannot be proposed.")


def _is_limit(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _is_chain(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(name, str) for name in value)


MOST_DIALOGS = 20
# Older runs are not read: they were made by other versions, for other work.
RUNS_OF = timedelta(days=90)
MOST_RUNS = 5000


def happened(now: datetime) -> Iterator[PastEvent]:
    """The last day's events that count for patterns, and the runs whose coherence was too low."""
    since = now - WINDOW
    events = ContextEvent.objects.filter(code__in=LEAST, happened_at__gt=since, agent__isnull=False)
    for code, agent_id, at in events.values_list("code", "agent_id", "happened_at"):
        yield PastEvent(code=code, agent_id=agent_id, at=at)
    drops = CompactionRun.objects.filter(coherence__lt=LEAST_COHERENCE, finished_at__gt=since)
    for agent_id, finished_at in drops.values_list("dialog__agent_id", "finished_at"):
        yield PastEvent(code=COHERENCE_DROP, agent_id=agent_id, at=finished_at or now)


def subject_of(agent: Agent, config: ContextConfig, *, until: float) -> Subject | None:
    """The agent with its newest dialogs of any owner, as many as can be read until then. None where it has no limit."""
    one = Dialog(agent=agent, llm=agent.llm)
    guard = guard_of(one, config)
    if guard is None or not has_limit(one):
        return None
    factor = P1_FACTOR_PERCENT / 100 if agent.is_p1 else 1.0
    rules = Rules(limit=guard.limit, threshold=guard.config.warning_threshold, goal=guard.config.goal)
    growths, rooms = [], [room_of(one)]
    for dialog, growth in _growths(agent, until=until):
        growths.append(growth)
        rooms.append(room_of(dialog))
    return Subject(
        agent_id=agent.pk,
        limit=max(by_limit(one, config).trace[0].tokens, ceil(config.min_limit / factor)),
        cap=None if None in rooms else min(room for room in rooms if room is not None),
        rules=rules,
        factor=factor,
        growths=tuple(growths),
    )


def _growths(agent: Agent, *, until: float) -> Iterator[tuple[Dialog, Growth]]:
    found = Dialog.objects.filter(agent=agent, trashed_at=None, current_leaf__isnull=False)
    for dialog in found.select_related("agent", "llm__provider", "current_leaf").order_by("-active_at")[:MOST_DIALOGS]:
        if monotonic() > until:
            return
        guard = guard_of(dialog)
        if guard is not None:
            yield dialog, growth_of(dialog, reserve=guard.reserve)


def runs(now: datetime) -> list[RewardedRun]:
    """The rewards of automatic runs. Not of LM Studio's LLMs: their chain is fixed, not the configured one."""
    found = CompactionRun.objects.filter(
        finished_at__gt=now - RUNS_OF, reward__isnull=False, estimated_before__isnull=False, trigger__in=BY_ITSELF
    ).exclude(dialog__llm__provider__kind=ProviderKind.LMSTUDIO)
    newest = found.select_related("dialog__llm__provider").order_by("-id").defer("view", "removed", "coverage")
    return [
        RewardedRun(
            llm=run.dialog.llm.slug,
            chain=configured(run.chain),
            limit=run.limit_tokens,
            estimated=run.estimated_before or 0,
            reward=run.reward or 0.0,
        )
        for run in newest[:MOST_RUNS]
    ]


def configured(chain: list[str] | tuple[str, ...]) -> Chain:
    """A chain without what `chain_for` puts before and behind it."""
    names = list(chain)
    if names[:1] == [TRIM]:
        del names[0]
    if names[:1] == [PASSAGES]:
        del names[0]
    elif names[-1:] == [PASSAGES]:
        del names[-1]
    return tuple(names)
