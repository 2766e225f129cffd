"""A client's request from storing to its outcome: taken up, driven by the same driver as a person's turn, concluded.

It runs in its own task, which ends by itself: a client that disconnects stops its generation, and its text is kept.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from functools import partial
from uuid import UUID

from django.db import transaction

from dialogs.api.canonical import ClientRequest, answer_said, following
from dialogs.api.errors import ApiError, erased, internal, model_not_found, unknown_key
from dialogs.api.listening import Listener
from dialogs.api.reads.clients import Outcome, outcome_of, outcome_with
from dialogs.api.speculation import RECENT, SpeculativeRequest
from dialogs.api.writes.client_turns import (
    CompactingElsewhere,
    HistoryLookup,
    Intake,
    Target,
    conclude,
    know_again,
    take_up,
)
from dialogs.common.threads import in_db, own_threads
from dialogs.compaction.reads.compaction import newest_run
from dialogs.driver.guarding import LoadedDialog
from dialogs.driver.run import SliceStart, begun, drive_for, read
from dialogs.driver.streaming import Call
from dialogs.llms.windows import must_be_asked, refusal
from dialogs.models import Agent, ApiKey, Dialog, Generation

logger = logging.getLogger(__name__)
LOOK_EVERY_SECONDS = 0.1
# A pause before the database work, for sending the speculative request and receiving an immediate answer.
HEAD_START_SECONDS = 0.003
# asyncio keeps tasks only weakly.
_running: set[asyncio.Task[None]] = set()


@dataclass
class ClientTurn:
    """Drives one request of a client. `problem` is why there is no outcome, once the task has ended."""

    key: ApiKey
    target: Target
    request: ClientRequest
    lookup: HistoryLookup | None = None
    speculative: SpeculativeRequest | None = None
    listener: Listener = field(default_factory=Listener)
    dialog_id: UUID | None = None
    outcome: Outcome | None = None
    problem: ApiError | None = None

    def start(self) -> asyncio.Task[None]:
        """Start the task. A `speculative` request is sent at once."""
        if self.speculative:
            self.listener.begin_head_start(self.speculative.request, self.speculative.settings)
        task = asyncio.create_task(self._run())
        _running.add(task)
        task.add_done_callback(_running.discard)
        return task

    async def _run(self) -> None:
        try:
            with own_threads():
                await self._end()
        finally:
            await self.listener.drop_head_start()
            self.listener.end()

    async def _end(self) -> None:
        """Drive the turn until it has an outcome or a problem."""
        try:
            await self._drive()
        except ApiError as error:
            self.problem = error
        except CompactingElsewhere:
            # The client has left, and nothing of its request was stored.
            self.problem = internal()
        except Exception as error:
            self.problem = await in_db(self._deleted)()
            if self.problem is None:
                logger.exception("A client's turn failed")
                self.problem = internal(error)

    def _deleted(self) -> ApiError | None:
        """The error, if dialog, key or agent were deleted meanwhile, so that another try would be useless."""
        if self.dialog_id and not Dialog.objects.filter(pk=self.dialog_id).exists():
            return erased()
        if not ApiKey.objects.filter(pk=self.key.pk).exists():
            return unknown_key()
        if not Agent.objects.filter(pk=self.target.agent.pk).exists():
            return model_not_found(self.request.model)
        return None

    async def _drive(self) -> None:
        if self.speculative:
            await asyncio.sleep(HEAD_START_SECONDS)
        elif must_be_asked(self.target.llm):
            # Without its window there is no guard yet, and equal requests would each be compacted. If it cannot be
            # read, driving the turn raises the error.
            await refusal(self.target.llm)
        taken, known = await self._take_up()
        self.dialog_id = taken.claim.dialog_id
        self.listener.concluding = partial(self._conclude, taken, known)
        await drive_for(taken.claim, self.listener, known)
        self.outcome = self.outcome or await in_db(conclude)(taken, prefix=self._prefix)

    def _store(self) -> tuple[Intake, SliceStart]:
        """Store the request, and read the dialog's state, in one trip to the database thread."""
        try:
            taken, loaded, call = self._store_and_begin()
            if call:
                return taken, call
        except CompactingElsewhere:
            raise
        except Exception:
            logger.exception("A client's request is stored without its first call")
            # The rows that were read may have been changed in memory.
            taken = take_up(key=self.key, target=self.target, request=self.request)
            loaded = LoadedDialog(taken.dialog, taken.branch)
        try:
            return taken, read(taken.claim.dialog_id, loaded)
        except Exception:  # the driver reads again, and knows what to do about it
            return taken, None

    @transaction.atomic
    def _store_and_begin(self) -> tuple[Intake, LoadedDialog, Call | None]:
        """The request; and its first call, where nothing has changed since it was built speculatively."""
        taken = take_up(key=self.key, target=self.target, request=self.request, lookup=self.lookup)
        prepared = self.speculative.prepared if self.speculative and taken.is_unchanged else None
        loaded = LoadedDialog(taken.dialog, taken.branch, prepared, taken.is_new)
        return taken, loaded, begun(taken.claim, loaded, self.listener) if prepared else None

    def _conclude(self, taken: Intake, known: SliceStart, last: Generation, has_calls: bool) -> None:
        """In the transaction that stores the last answer."""
        only = known if isinstance(known, Call) and known.generation is last else None
        outcome = outcome_with(last, generations=1, has_calls=has_calls) if only else outcome_of(taken.leaf)
        know_again(taken, outcome, prefix=self._prefix)
        transaction.on_commit(partial(setattr, self, "outcome", outcome))
        if only and last.message:
            kept = partial(RECENT.keep, only.sizing.context, last.message, number=last.number, has_calls=has_calls)
            transaction.on_commit(kept)

    async def _take_up(self) -> tuple[Intake, SliceStart]:
        """Take up the request; while another one with this history is being compacted, wait, to use its view."""
        told = False
        while True:
            try:
                # A speculative request is being answered meanwhile, so this need not come first.
                taken, known = await in_db(self._store, first=not self.speculative)()
            except CompactingElsewhere:
                if self.listener.has_left:
                    raise
                if not told:
                    told = True
                    self.listener.compacting()
                await asyncio.sleep(LOOK_EVERY_SECONDS)
            else:
                if told:
                    self.listener.compacted(await in_db(newest_run)(taken.claim.dialog_id))
                return taken, known

    def _prefix(self, taken: Intake, outcome: Outcome) -> str:
        """The prefix that the answer makes, as the client will send it back."""
        return following(taken.prefix, answer_said(self.listener.text, outcome.calls))
