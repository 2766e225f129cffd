"""Asks the pruning agent in advance, so that nobody waits for its decision when the context is full.

Only the decision is prepared, since that takes long. The compaction applies it to the messages that it was about, keeps
all later ones, and computes ledger, newest values and laws again. If the preparation fails or is outdated, the agent is
asked then. Synchronous, in a turn worker.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from asgiref.sync import async_to_sync
from django.db import IntegrityError, transaction
from django.utils import timezone

from dialogs.common.threads import in_db
from dialogs.compaction.pruning_agent import PruningModel, pruning_llm
from dialogs.compaction.writes.compaction import Trigger, new_run
from dialogs.context.material import READS_THE_VIEW, material
from dialogs.llms.guard import Guard, active_guard
from dialogs.models import LLM, Course, Dialog
from dialogs.providers.addresses import is_near
from dialogs.turns.reads.turns import dialog_to_drive
from health.compaction.attempts import attempted
from health.compaction.config import TRIM, Prepare
from health.compaction.laws.cuts import Cut
from health.compaction.strategies import REGISTRY
from health.compaction.strategies.prune_with_agent import followed, offered_to, questions
from health.compaction.terms.ports import Kit, Prepared, Prune, digests
from health.compaction.terms.units import ContextState, Unit
from health.models import CompactionRun, LlmPrice, PreparedPruning
from health.models.claims import claimed_until

logger = logging.getLogger(__name__)
LOOK_EVERY_SECONDS = 1.0


class PreparationAborted(Exception):
    """Preparing is given up: the conversation's view has changed, or the server has no free slot."""


@dataclass(frozen=True)
class Preparation:
    """A preparation: for which view of which dialog, and the agent's questions with their cuts."""

    dialog: Dialog
    head_run_id: int | None
    stamp: str
    model: PruningModel
    pieces: Sequence[tuple[Sequence[Cut], Prune]]

    @property
    def shown(self) -> list[Unit]:
        return [unit for _, question in self.pieces for unit in question.units]


def is_soon(guard: Guard | None, *, tokens: int) -> bool:
    """Is a request of so many tokens, the reserve among them, so large that a pruning agent is asked beforehand? Above
    the threshold a run asks it."""
    if guard is None or guard.off or guard.config.prepare is Prepare.NEVER:
        return False
    first = next((name for name in guard.chain if name != TRIM), "")
    if first != READS_THE_VIEW:
        return False
    return guard.config.prepare_from * guard.threshold <= tokens <= guard.threshold


def prepare(dialog_id: UUID) -> bool:
    """Ask now, and store the decision. False if there is nothing to prepare, or it failed."""
    wanted = _wanted(dialog_id)
    if wanted is None or not _claimed(wanted):
        return False
    answers: list[str] = []
    try:
        answers = async_to_sync(_answers)(wanted)
    except PreparationAborted as why:
        logger.info("Dialog %s: the pruning agent is not asked beforehand: %s", dialog_id, why)
        PreparedPruning.objects.filter(dialog=dialog_id).delete()
        return False
    except Exception as error:  # stored as failed, or every answer would ask again
        logger.warning("Dialog %s: the pruning agent was asked beforehand in vain: %s", dialog_id, error)
        answers = []
    _keep(wanted, answers)
    return bool(answers)


def _wanted(dialog_id: UUID) -> Preparation | None:
    dialog = dialog_to_drive(dialog_id)
    guard, leaf = active_guard(dialog), dialog.current_leaf
    if guard is None or leaf is None or dialog.trashed_at or leaf.course.guard_held:
        return None
    row = PreparedPruning.objects.filter(dialog=dialog).first()
    if row is not None and row.is_under_way:
        return None
    llm = pruning_llm(dialog)
    if not may_be_asked(llm, dialog, guard.config.prepare):
        return None
    run = new_run(dialog, leaf, guard, Trigger.PRE_REQUEST)
    begun = material(run, guard.config)
    state = _trimmed(begun.state, begun.kit) if TRIM in guard.chain else begun.state
    offered = offered_to(state.units)
    if not offered or not is_soon(guard, tokens=state.estimated_tokens):
        return None
    pieces = questions(state, offered, then=guard.threshold)
    return Preparation(dialog, run.parent_run_id, stamp_of(run, guard), PruningModel.of(llm), pieces)


def _trimmed(state: ContextState, kit: Kit) -> ContextState:
    """The state with bulky payloads shortened, which is what a configured chain begins with."""
    try:
        next(attempted(REGISTRY[TRIM], state, kit, fills_up=True))
    except StopIteration as end:
        found: ContextState = end.value.state
        return found
    return state


def may_be_asked(llm: LLM, dialog: Dialog, prepare: Prepare) -> bool:
    """Does asking this LLM block nobody and cost nothing? It costs something if staff entered a price, or if its server
    is on the internet."""
    if prepare is not Prepare.FREE:
        return prepare is Prepare.ALWAYS
    shares_server = llm.provider_id == dialog.llm.provider_id and (llm.provider.max_concurrent or 1) < 2
    is_priced = LlmPrice.objects.filter(llm=llm, per_million__gt=0).exists()
    return not shares_server and not is_priced and is_near(llm.provider.base_url)


def stamp_of(run: CompactionRun, guard: Guard) -> str:
    """A digest of what a decision depends on beside the messages: settings, limit, and who decides for whom."""
    dialog = run.dialog
    about = (guard.config, run.chain, run.limit_tokens, dialog.llm_id, pruning_llm(dialog).pk, run.focus)
    return hashlib.sha256(repr(about).encode()).hexdigest()


@transaction.atomic
def _claimed(wanted: Preparation) -> bool:
    """Claim the preparation; None if it is claimed, decided or failed for these very messages and settings."""
    row = PreparedPruning.objects.select_for_update().filter(dialog=wanted.dialog).first()
    if row is not None and (row.is_under_way or _is_settled(row, wanted)):
        return False
    values: dict[str, Any] = {
        "head_run_id": wanted.head_run_id,
        "stamp": wanted.stamp,
        "shown": {},
        "answers": [],
        "begun_at": timezone.now(),
        "claimed_until": claimed_until(),
    }
    try:
        PreparedPruning.objects.update_or_create(dialog=wanted.dialog, defaults=values)
    except IntegrityError:  # another worker was faster
        return False
    return True


def _is_settled(row: PreparedPruning, wanted: Preparation) -> bool:
    is_over = row.claimed_until is None
    if not is_over or (row.head_run_id, row.stamp) != (wanted.head_run_id, wanted.stamp):
        return False
    return not row.answers or prepared_of(row).holds_for(wanted.shown)


async def _answers(wanted: Preparation) -> list[str]:
    """The agent's answers, in order. Raises PreparationAborted as soon as nobody needs them, or an asking's error."""
    asking = asyncio.ensure_future(_all_answers(wanted))
    try:
        while not asking.done():
            await asyncio.wait({asking}, timeout=LOOK_EVERY_SECONDS)
            if not asking.done() and not await in_db(_is_still_wanted)(wanted):
                raise PreparationAborted("the conversation went on without it")
        return asking.result()
    finally:
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)


async def _all_answers(wanted: Preparation) -> list[str]:
    """Raises Rejected at the first that cannot be followed."""
    answers: list[tuple[Sequence[Cut], str]] = []
    for piece, question in wanted.pieces:
        answers.append((piece, await wanted.model.decide(question, on_wait=_not_in_line)))
        followed(answers)
    return [answer for _, answer in answers]


async def _not_in_line(_place: int) -> None:
    raise PreparationAborted("all requests that its server takes at once are taken")


def _is_still_wanted(wanted: Preparation) -> bool:
    """Renew the claim; False where the view that was shown holds no longer, or the dialog is in the trash."""
    row = PreparedPruning.objects.filter(dialog=wanted.dialog, stamp=wanted.stamp)
    course = Course.objects.filter(
        messages=wanted.dialog.current_leaf, head_run=wanted.head_run_id, dialog__trashed_at=None
    )
    return course.exists() and bool(row.update(claimed_until=claimed_until()))


def _keep(wanted: Preparation, answers: list[str]) -> None:
    row = PreparedPruning.objects.filter(dialog=wanted.dialog, stamp=wanted.stamp)
    row.update(shown=digests(wanted.shown), answers=answers, claimed_until=None)


def prepared_of(row: PreparedPruning) -> Prepared:
    return Prepared(shown=row.shown, answers=tuple(row.answers))


def prepared_for(run: CompactionRun, guard: Guard | None) -> PreparedPruning | None:
    """The preparation for this run's view and settings; it may be under way. The engine finds out which of its messages
    are unchanged."""
    if guard is None or READS_THE_VIEW not in run.chain:
        return None
    found = PreparedPruning.objects.filter(dialog=run.dialog_id, stamp=stamp_of(run, guard))
    return found.filter(head_run_id=run.parent_run_id).first()
