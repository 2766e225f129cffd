"""What has happened, as the critic's values: events and runs of a day, agents with their limits, runs with rewards."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from math import ceil
from time import monotonic

from dialogs.compaction.reads.compaction import BY_ITSELF
from dialogs.context.present import growth_of
from dialogs.llms.guard import by_limit, guard_of, has_limit, room_of
from dialogs.models import Agent, Dialog
from dialogs.models.llm import ProviderKind
from health.compaction.config import PASSAGES, TRIM, ContextConfig
from health.critic.chains import Chain, Run
from health.critic.limits import Subject
from health.critic.patterns import COHERENCE_DROP, LEAST, LEAST_COHERENCE, WINDOW, Happened
from health.critic.replay import Growth, Rules
from health.limits import P1_FACTOR_PERCENT
from health.models import CompactionRun, ContextEvent

MOST_DIALOGS = 20
# Older runs were made by other versions, of other work.
RUNS_OF = timedelta(days=90)
MOST_RUNS = 5000


def happened(now: datetime) -> Iterator[Happened]:
    """The events of the last day that are parts of patterns."""
    since = now - WINDOW
    events = ContextEvent.objects.filter(code__in=LEAST, happened_at__gt=since, agent__isnull=False)
    for code, agent_id, at in events.values_list("code", "agent_id", "happened_at"):
        yield Happened(code=code, agent_id=agent_id, at=at)
    drops = CompactionRun.objects.filter(coherence__lt=LEAST_COHERENCE, finished_at__gt=since)
    for agent_id, finished_at in drops.values_list("dialog__agent_id", "finished_at"):
        yield Happened(code=COHERENCE_DROP, agent_id=agent_id, at=finished_at or now)


def subject_of(agent: Agent, config: ContextConfig, *, until: float) -> Subject | None:
    """The agent with its newest dialogs, whoever owns them, as far as the time suffices. None without a limit."""
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


def runs(now: datetime) -> list[Run]:
    """What the guard's own runs earned. LM Studio's chain is fixed, so its runs say nothing of the configured one."""
    found = CompactionRun.objects.filter(
        finished_at__gt=now - RUNS_OF, reward__isnull=False, estimated_before__isnull=False, trigger__in=BY_ITSELF
    ).exclude(dialog__llm__provider__kind=ProviderKind.LMSTUDIO)
    newest = found.select_related("dialog__llm__provider").order_by("-id").defer("view", "removed", "coverage")
    return [
        Run(
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
