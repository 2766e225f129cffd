"""What a person does to a dialog with their own hands, in any order, beside all else that happens to it."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from dialogs.common.errors import DialogError
from dialogs.compaction.work import perform
from dialogs.compaction.writes.compaction import queue_run
from dialogs.compaction.writes.manual_compaction import bring_back, reset
from dialogs.compaction.writes.view_changes import undo
from dialogs.context.estimate import next_context, present_context
from dialogs.driver.writes.courses import return_to_earlier
from dialogs.llms.guard import by_limit
from dialogs.models import Course, Generation, Message, MessageMark, ToolCall
from dialogs.models.message import INSERTED
from dialogs.pages.writes import archive_dialog, restore_dialog, trash_dialog, unarchive_dialog
from dialogs.transcript.reads.archived_messages import archived_ids
from dialogs.transcript.writes.dialog_row import erase_dialog
from dialogs.transcript.writes.marks import lay_down, set_pin, take_back
from dialogs.transfer import export_json, import_dialog
from dialogs.turns.reads.turns import dialog_to_drive
from dialogs.turns.writes.messages import retry
from health.compaction.strategies import REGISTRY
from health.models import CompactionRun
from tests.dialogs.compacting_builders import long_text
from tests.dialogs.driver.conftest import drive_until_idle
from tests.dialogs.driver.event_orders import LIMIT, SIZES, EventOrders, Now, Status, texts

PICK = st.integers(min_value=0, max_value=50)
# All but the one that asks a model.
STRATEGIES = sorted(REGISTRY.keys() - {"prune_with_agent"})
MOST = 6000


class EventsByHand(EventOrders):
    @precondition(lambda self: MessageMark.objects.filter(message__dialog=self.dialog, pinned=True).exists())
    @rule(pick=PICK)
    def unpin(self, pick: int) -> None:
        pins = MessageMark.objects.filter(message__dialog=self.dialog, pinned=True).order_by("pk")
        set_pin(dialog=self.dialog, message_id=pins[pick % len(pins)].message_id, pinned=False)

    @precondition(lambda self: archived_ids(self.dialog.pk))
    @rule(pick=PICK, is_line=st.booleans(), keep=st.booleans())
    def bring_it_back(self, pick: int, is_line: bool, keep: bool) -> None:
        left = Message.objects.filter(pk__in=archived_ids(self.dialog.pk)).exclude(origin__in=INSERTED).order_by("pk")
        if not left:
            return
        wanted, before, marked = left[pick % len(left)], texts(self.dialog), self._marks()
        line = wanted.content.split(". ")[0] if is_line else None
        try:
            run = bring_back(dialog=self.dialog, message_id=wanted.pk, text=line, by=self.alice)
        except DialogError:
            return
        if not keep:
            undo(dialog=self.dialog, run_id=run.pk, by=self.alice)
            assert (texts(self.dialog), self._marks()) == (before, marked)

    @rule(name=st.sampled_from(STRATEGIES), keep=st.booleans())
    def compact_by_one_strategy(self, name: str, keep: bool) -> None:
        self.dialog.refresh_from_db()
        before = texts(self.dialog)
        try:
            chain = replace(by_limit(self.dialog), chain=(name,))
            run = queue_run(self.dialog, guard=chain, trigger="manual", requested_by=self.alice)
        except DialogError:
            return
        self._worked_at(run, before, keep=keep)

    @rule(keep=st.booleans())
    def begin_afresh(self, keep: bool) -> None:
        before = texts(self.dialog)
        try:
            run = reset(dialog=self.dialog, by=self.alice)
        except DialogError:
            return
        self._worked_at(run, before, keep=keep)

    @rule(limit=st.sampled_from([2500, LIMIT, MOST]))
    def change_the_limit(self, limit: int) -> None:
        self.dialog.agent.context_limit = limit
        self.dialog.agent.save()

    @rule(size=SIZES)
    def have_it_answered_again(self, size: int) -> None:
        self._play({"text": long_text(self._next(), size)})
        try:
            retry(dialog=self.dialog)
        except DialogError:
            return
        drive_until_idle(self.dialog)

    @rule(pick=PICK)
    def go_back_to_an_earlier_course(self, pick: int) -> None:
        number = pick % Course.objects.filter(dialog=self.dialog).count() + 1
        try:
            return_to_earlier(dialog=self.dialog, number=number)
        except DialogError:
            return

    @rule()
    def put_it_away_and_fetch_it(self) -> None:
        before = texts(self.dialog)
        for away, back in ((archive_dialog, unarchive_dialog), (trash_dialog, restore_dialog)):
            self.dialog.refresh_from_db()
            away(dialog=self.dialog)
            self.dialog.refresh_from_db()
            back(dialog=self.dialog)
        drive_until_idle(self.dialog)
        assert texts(self.dialog) == before

    @rule()
    def take_it_elsewhere(self) -> None:
        """A copy that was imported sends what the dialog itself would send."""
        if ToolCall.objects.filter(message__dialog=self.dialog, result_message=None).exists():
            # The copy says that the call was interrupted.
            return
        before, left = texts(self.dialog), len(archived_ids(self.dialog.pk))
        copy = import_dialog(owner=self.alice, data=export_json(self.dialog))
        assert texts(copy) == before
        assert len(archived_ids(copy.pk)) == left
        erase_dialog(dialog=trash_dialog(dialog=copy))

    @rule(holds=st.booleans())
    def change_a_rule(self, holds: bool) -> None:
        rule_of_hers = f"Always name the pump {self._next()} by its number."
        lay_down(dialog=self.dialog, text=rule_of_hers)
        if not holds:
            take_back(dialog=self.dialog, text=rule_of_hers)

    # --- what holds ---

    def what_is_marked_is_sent_word_for_word(self, now: Now) -> None:
        """Whenever it was marked."""
        here, sent = {message.pk for message in now.branch}, "\n".join(now.request)
        for mark in MessageMark.objects.filter(message_id__in=here).select_related("message"):
            if mark.pinned or mark.priority == 1:
                assert mark.message.content in sent

    def every_view_can_be_explained(self) -> None:
        super().every_view_can_be_explained()
        self.what_is_not_sent_as_it_was_said_is_in_the_archive()
        self.what_is_read_in_part_is_the_same()
        self.every_request_was_within_the_limit()

    def what_is_not_sent_as_it_was_said_is_in_the_archive(self) -> None:
        context, left = present_context(dialog_to_drive(self.dialog.pk)), archived_ids(self.dialog.pk)
        whole = {entry.message_id for entry in context.view or () if entry.content is None}
        assert {message.pk for message in context.branch} - whole <= left
        assert not whole & left

    def what_is_read_in_part_is_the_same(self) -> None:
        part, whole = (read(dialog_to_drive(self.dialog.pk)) for read in (next_context, present_context))
        assert part.pieces == whole.pieces

    def every_request_was_within_the_limit(self) -> None:
        sizes = Generation.objects.filter(dialog=self.dialog, manifest__estimated__gt=MOST)
        assert not sizes.exclude(status="failed").exists()

    # --- helpers ---

    def _marks(self) -> list[tuple[int, bool, int | None]]:
        marks = MessageMark.objects.filter(message__dialog=self.dialog).order_by("message_id")
        return list(marks.values_list("message_id", "pinned", "priority"))

    def _worked_at(self, run: CompactionRun, before: list[str], *, keep: bool) -> None:
        perform(run.pk, embedder="static")
        run.refresh_from_db()
        if run.status != Status.APPLIED:
            assert texts(self.dialog) == before
        elif not keep:
            undo(dialog=self.dialog, run_id=run.pk, by=self.alice)
            assert texts(self.dialog) == before
