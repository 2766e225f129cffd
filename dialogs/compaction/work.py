"""Works at a run: claims it, drives the engine, answers its needs, reports each step, records the end.

Synchronous and CPU-bound, in a Celery worker, or in a thread where no worker answers. Any failure ends the run as
failed; the dialog's messages stay as they are.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any

from django.conf import settings
from django.db import connections

from dialogs.compaction.facts import beginning, begins, expected, facts_of
from dialogs.compaction.log import keep_reward, log_beginning, log_end
from dialogs.compaction.preparing import LOOK_EVERY_SECONDS, prepared_for, prepared_of
from dialogs.compaction.pruning_agent import answer_for, pruner_of, summarizer_for
from dialogs.compaction.reads.compaction import BY_ITSELF
from dialogs.compaction.writes import compaction
from dialogs.compaction.writes.compaction import RunClaim, renew
from dialogs.context.material import READS_THE_VIEW, Material, material
from dialogs.llms.guard import config_of, guard_of
from dialogs.models import LLM, Generation
from health.adapters import embeddings
from health.compaction import recovery
from health.compaction.compact import compact
from health.compaction.config import ContextConfig, RecoveryMode
from health.compaction.laws.floor import floor_of, irreducible, must_stay
from health.compaction.reward import counted_from
from health.compaction.runner import nobody
from health.compaction.runner import run as run_to_its_end
from health.compaction.strategies import REGISTRY
from health.compaction.terms.outcome import Code, CompactionOutcome, Step
from health.compaction.terms.ports import Answer, Embed, Kit, Need, Prune, Strategy, StrategyRun
from health.compaction.terms.reasons import Reason, Why, columns_of
from health.compaction.terms.units import ContextState
from health.models import CompactionRun
from health.models.claims import CLAIM_SECONDS

logger = logging.getLogger(__name__)
Status = CompactionRun.Status
Trigger = CompactionRun.Trigger
FRESH_START = "fresh_start"
# *Compact now* leaves at best so much of what may go of the present request, and this much is enough.
WISHED_GOAL, WISHED_MOST = 0.5, 0.75
# After a compaction so many more requests as large as the last ones fit below the threshold, where what must stay and a
# choice of this share of the limit leave that much. A client, whose person sees but a pause, has all
# of that for up to half of the goal; a person's chat has as much of it as a quarter of the goal gives.
HEADROOM_REQUESTS, LEAST_CHOICE = 3, 0.05
LEAST_FOR_CLIENTS, LEAST_FOR_PEOPLE = 0.5, 0.75


class Cancelled(Exception):
    """A person cancelled the run, or another worker has it."""


def perform(run_id: int, *, embedder: str = embeddings.DEFAULT) -> bool:
    """Work at a queued run until it is over. False when there was nothing to do here."""
    claim = compaction.claim_run(run_id)
    if claim is None:
        return False
    run = CompactionRun.objects.select_related("dialog", "course", "leaf", "parent_run").get(pk=run_id)
    pruner = None
    try:
        pruner = pruner_of(run)
        with Heartbeat(claim):
            begun = with_prepared(run, claim, aimed(run, material(run, config_for(run))))
            _report(claim, **beginning(run, begun))
            log_beginning(run, estimated_before=begun.tokens_before)
            outcome = counted_from(drive(run, claim, begun, embedder, pruner), begun.tokens_before)
            status, facts = facts_of(outcome, begun, run)
        ended = compaction.finish_run(claim, status=status, facts=facts)
        keep_reward(ended, begun, outcome)
    except Cancelled:
        ended = compaction.finish_run(claim, status=Status.CANCELLED, facts={})
    except Exception as error:
        logger.exception("Compaction %s of dialog %s failed", run_id, run.dialog_id)
        why = Reason(Why.FAILED_WITHIN, {"name": type(error).__name__})
        failure = {"code": Code.BREAKER_FAILED, **columns_of(why)}
        ended = compaction.finish_run(claim, status=Status.FAILED, facts=failure)
    log_end(ended, pruner)
    return True


def with_prepared(run: CompactionRun, claim: RunClaim, begun: Material) -> Material:
    """What the run begins with, and what the pruning agent decided beforehand. While the agent is still deciding, the
    run waits: asking anew takes longer. Raises Cancelled."""
    guard, until = guard_of(run.dialog), time.monotonic() + settings.DOMINDS_PRUNING_SECONDS
    while (row := prepared_for(run, guard)) is not None and row.is_under_way and time.monotonic() < until:
        _report(claim, phase=READS_THE_VIEW)
        time.sleep(LOOK_EVERY_SECONDS)
    if row is None or not row.answers:
        return begun
    return replace(begun, kit=replace(begun.kit, prepared=prepared_of(row)))


def config_for(run: CompactionRun) -> ContextConfig:
    """The guard's settings for its own runs. A person's run applies whatever its size.

    The guard's goal includes the ledger, since a view near the threshold would be compacted again at every message.
    """
    guard = guard_of(run.dialog)
    config = guard.config if guard else config_of(run.dialog)
    if run.trigger == Trigger.RESET:
        return for_a_reset(config)
    if run.trigger == Trigger.MANUAL:
        return replace(config, recovery_mode=RecoveryMode.ERROR)
    return replace(config, goal=max(config.goal - config.ledger_share, config.goal / 2))


def for_a_reset(config: ContextConfig) -> ContextConfig:
    """For a reset: applied at every size, whatever it frees, and below the guard's threshold."""
    accept = min(config.accept, config.warning_threshold)
    return replace(config, warning_threshold=0, goal=0, accept=accept, min_gain=0, recovery_mode=RecoveryMode.ERROR)


def aimed(run: CompactionRun, begun: Material) -> Material:
    """The run's goal. A person's run frees a share of the present context, since the limit may be far away. The guard's
    leaves room for a few more requests, so that not each of them is compacted again.
    """
    state, config = begun.state, begun.state.config
    if run.trigger == Trigger.RESET:
        whole = max(1, state.estimated_tokens)
        # What is carried along has its share of the room there is, however long the dialog has become.
        config = replace(config, ledger_share=config.ledger_share * min(1.0, state.limit / whole))
        return replace(begun, state=replace(state, limit=whole, room=state.limit, config=config))
    if run.trigger != Trigger.MANUAL:
        begun = _as_far_as_tried(run, begun)
        goal = _goal_with_headroom(run, begun, config)
        return replace(begun, state=replace(begun.state, config=replace(config, goal=goal)))
    present, limit = begun.tokens_before, max(1, state.limit)
    stays = min(present, must_stay(state, begun.kit))
    goal, accept = (stays + share * (present - stays) for share in (WISHED_GOAL, WISHED_MOST))
    goal, accept = min(config.goal, goal / limit), min(config.accept, accept / limit)
    carried = config.ledger_share * min(1.0, present / limit)
    config = replace(config, goal=goal, accept=accept, warning_threshold=accept, ledger_share=carried)
    return replace(begun, state=replace(state, config=config))


def _as_far_as_tried(run: CompactionRun, begun: Material) -> Material:
    """Raise the limit to the largest size not yet refused, where the least that must stay is above a guessed window."""
    state, guard = begun.state, guard_of(run.dialog)
    if guard is None or irreducible(state, begun.kit).tokens <= state.limit:
        return begun
    tried = min(guard.tried, begun.tokens_before)
    return replace(begun, state=replace(state, limit=max(state.limit, tried)))


def _goal_with_headroom(run: CompactionRun, begun: Material, config: ContextConfig) -> float:
    """Lower than configured where requests lately added so much that the threshold would soon be reached again."""
    before = CompactionRun.objects.filter(
        course=run.course_id, pk__lt=run.pk, status=Status.APPLIED, trigger__in=BY_ITSELF, estimated_after__isnull=False
    ).last()
    if before is None or before.finished_at is None:
        return config.goal
    answers = Generation.objects.filter(course=run.course_id, started_at__gt=before.finished_at)
    grown = max(0, begun.tokens_before - (before.estimated_after or 0)) / max(1, answers.count())
    limit = max(1, begun.state.limit)
    # Below what must stay there is nothing to choose, and what comes after passages would choose worse.
    least = floor_of(begun.state, begun.kit).tokens / limit + LEAST_CHOICE
    rooms = [config.warning_threshold - number * grown / limit for number in range(HEADROOM_REQUESTS, 0, -1)]
    if run.dialog.is_client_driven:
        wanted = max(rooms[0], LEAST_FOR_CLIENTS * config.goal)
    else:
        wanted = next((room for room in rooms if room >= LEAST_FOR_PEOPLE * config.goal), config.goal)
    return min(config.goal, max(wanted, least))


def drive(run: CompactionRun, claim: RunClaim, begun: Material, embedder: str, pruner: LLM | None) -> CompactionOutcome:
    """The engine's generator to its end. Raises Cancelled."""
    answer = _answers(run, embedder, pruner)
    steps: list[dict[str, Any]] = []
    starting = _Starting(run, claim, steps)
    compacting = compact(begun.state, begun.kit, chain=run.chain, strategies=starting.announced(), judge=True)

    def report(step: Step) -> None:
        steps.append(step.as_json())
        _report(claim, steps=steps, tokens_now=step.estimated_after, **begins(step.phase))

    return run_to_its_end(compacting, answer=answer, on_step=report, clock=time.perf_counter)


def _report(claim: RunClaim, **changes: Any) -> None:
    if not compaction.report(claim, **changes):
        raise Cancelled


class _Starting:
    """Wraps strategies to report their beginning: the engine reports only their end."""

    def __init__(self, run: CompactionRun, claim: RunClaim, done: list[dict[str, Any]]) -> None:
        self.run, self.claim, self.done = run, claim, done

    def announced(self) -> Mapping[str, Strategy]:
        every = {**REGISTRY, FRESH_START: recovery.fresh_start}
        return {name: self._announcing(name, strategy) for name, strategy in every.items()}

    def _announcing(self, name: str, strategy: Strategy) -> Strategy:
        def begun(state: ContextState, kit: Kit) -> StrategyRun:
            steps = [*self.done, *expected(name, state, self.run)]
            _report(self.claim, phase=name, tokens_now=state.estimated_tokens, steps=steps)
            return (yield from strategy(state, kit))

        return begun


def _answers(run: CompactionRun, embedder: str, pruner: LLM | None) -> Callable[[Need], Answer]:
    embed = embeddings.embedder(embedder)
    prune, summarise = (answer_for(run, pruner), summarizer_for(run, pruner)) if pruner else (nobody, nobody)

    def answer(need: Need) -> Answer:
        if isinstance(need, Embed):
            return embed(need)
        return prune(need) if isinstance(need, Prune) else summarise(need)

    return answer


class Heartbeat:
    """Renews a claim from a thread of its own. A process that dies stops renewing, and another takes the run up."""

    def __init__(self, claim: RunClaim) -> None:
        self.claim = claim
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name=f"compaction-{claim.run_id}", daemon=True)

    def __enter__(self) -> Heartbeat:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _beat(self) -> None:
        while not self._over.wait(CLAIM_SECONDS / 3):
            try:
                renew(self.claim)
            except Exception as error:  # the database is away for a moment: the claim lasts for two more beats
                logger.warning("Could not renew compaction %s: %s", self.claim.run_id, error)
            finally:
                connections.close_all()
