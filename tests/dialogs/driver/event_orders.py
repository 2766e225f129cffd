"""Events in any order, and what holds after each of them: a state machine over one guarded dialog.

The database, the driver and the engine are the real ones; the provider plays what each event needs, and refuses any
request whose calls and results do not pair.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import uuid4

from django.conf import settings
from django.contrib.auth.models import User
from django.utils import timezone
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from dialogs.common.errors import DialogError
from dialogs.common.threads import in_db
from dialogs.compaction.work import perform
from dialogs.compaction.writes.compaction import claim_run, finish_run, queue_run
from dialogs.compaction.writes.view_changes import redo, undo
from dialogs.context.border import chat_request
from dialogs.context.estimate import present_context
from dialogs.driver import run as driver
from dialogs.driver.writes.courses import start_course, unanswered
from dialogs.llms.guard import by_limit
from dialogs.models import (
    LLM,
    Agent,
    Course,
    Dialog,
    Generation,
    Message,
    MessageMark,
    Provider,
    Question,
    Reminder,
    ToolCall,
)
from dialogs.models.dialog import OwnTools
from dialogs.models.message import INSERTED, MessageOrigin
from dialogs.pages.writes import change_llm
from dialogs.providers.base import ChatMessage
from dialogs.providers.base import ToolCall as CallOnTheWire
from dialogs.providers.laws import shaped, without_calls
from dialogs.providers.openai_compatible import wire_message
from dialogs.transcript.writes.marks import set_pin, set_priority
from dialogs.turns.writes.messages import answer_question, choose_branch, edit_message, post_message, request_stop
from health.models import CompactionRun
from tests.dialogs.compacting_builders import RULE, a_history, calibrate, guard, long_text
from tests.dialogs.driver.conftest import a_call, drive_until_idle
from tests.standins.templates import TEMPLATES, WITH_TOOLS

Status = CompactionRun.Status
# In sentences; the last is a wall of text, three times as long as the limit.
SIZES = st.sampled_from([1, 6, 25, 60, 400])
LIMIT = 3500
# Of the other LLM.
WINDOW = 3000
# Longer words may be shortened once others have been said after them.
SHORT = 600


def texts(dialog: Dialog) -> list[str]:
    """What would be sent now, but for the system message."""
    dialog.refresh_from_db()
    return [piece.content for piece in present_context(dialog).pieces]


@dataclass(frozen=True)
class Now:
    """What was said on the branch, the texts and arguments to be sent next, and where those stand that are messages."""

    branch: Sequence[Message]
    request: list[str]
    seqs: list[int]


class EventOrders(RuleBasedStateMachine):
    """Alice's dialog. `said` is every message there has been, by id."""

    @initialize()
    def begin(self) -> None:
        name = uuid4().hex[:12]
        alice = User.objects.create(username=name)
        self.provider = Provider.objects.create(name=name, kind="scripted", base_url="none.json")
        llm = LLM.objects.create(provider=self.provider, model_id="tiny", context_length=100_000)
        self.other = LLM.objects.create(
            provider=self.provider, model_id="tinier", context_length=WINDOW, prefill="refused"
        )
        calibrate(self.other)
        agent = Agent.objects.create(name="Helper", slug=name, instructions="You help. Rule 7 holds.", llm=llm)
        # With all tools, however small the room is: the agent writes reminders and clears its mind.
        self.dialog = Dialog.objects.create(
            owner=alice, agent=agent, llm=llm, active_at=timezone.now(), own_tools=OwnTools.ON
        )
        Course.objects.create(dialog=self.dialog, number=1)
        self.alice, self.number = alice, 0
        self.said: dict[int, str] = {}
        self.requests: list[dict[str, Any]] = []
        self.untried: list[dict[str, Any]] = []
        guard(self.dialog, LIMIT)
        a_history(self.dialog, pairs=4)

    # --- what happens ---

    @rule(size=SIZES, answer=SIZES)
    def say(self, size: int, answer: int) -> None:
        self._play({"text": long_text(self._next(), answer)})
        post_message(dialog=self.dialog, content=f"Question {self._next()}. {long_text(self.number, size)}")
        drive_until_idle(self.dialog)

    @rule(words=st.booleans(), at=st.integers(min_value=1, max_value=12), size=SIZES)
    def be_interrupted_while_it_works(self, words: bool, at: int, size: int) -> None:
        """By a message, or by a stop, before whatever the driver is about to do."""
        self._work()

        def happen() -> None:
            if words:
                post_message(dialog=self.dialog, content=f"WAIT {self._next()}. {long_text(self.number, size)}")
            else:
                request_stop(dialog=self.dialog)

        self._drive_until(at, in_db(happen))

    @rule(at=st.integers(min_value=1, max_value=12), is_done=st.booleans(), times=st.sampled_from([1, 2, 5]))
    def fail_within_a_slice(self, at: int, is_done: bool, times: int) -> None:
        """For a reason that nobody thought of, before or after what the driver was about to do."""
        self._work()

        async def fail() -> None:
            raise ZeroDivisionError

        self._drive_until(at, fail, is_done=is_done, times=times)

    @rule(reminders=st.lists(st.booleans(), min_size=1, max_size=2), beside=st.booleans())
    def be_cleared(self, reminders: list[bool], beside: bool) -> None:
        """By the agent, once or twice in a round, with a reminder or without, beside another call or alone."""
        calls = [self._noting()] if beside else []
        for with_reminder in reminders:
            given = {"reminder_content": long_text(self._next(), 1)} if with_reminder else {}
            calls.append(a_call("clear_mind", json.dumps(given), f"call-{self._next()}"))
        self._play(self._calling(*calls), {"text": long_text(self._next(), 6)})
        post_message(dialog=self.dialog, content=f"Clear {self._next()}.")
        drive_until_idle(self.dialog)

    @rule(beside=st.booleans(), clears=st.booleans(), how=st.sampled_from(["box", "message", ""]))
    def be_asked(self, beside: bool, clears: bool, how: str) -> None:
        """Alice answers in the box, or with a message, or not at all."""
        calls = [a_call("ask_human", json.dumps({"question": "Which?"}), f"call-{self._next()}")]
        calls += [self._noting()] if beside else []
        calls += [a_call("clear_mind", "{}", f"call-{self._next()}")] if clears else []
        self._play(self._calling(*calls), {"text": long_text(self._next(), 6)})
        post_message(dialog=self.dialog, content=f"Choose {self._next()}.")
        drive_until_idle(self.dialog)
        asked = Question.objects.filter(dialog=self.dialog, status="pending").first()
        if asked and how == "box":
            answer_question(dialog=self.dialog, question_id=asked.pk, answer=f"Answer {self._next()}.")
        elif how == "message":
            post_message(dialog=self.dialog, content=f"Rather {self._next()}.")
        drive_until_idle(self.dialog)

    @rule()
    def change_the_llm(self) -> None:
        self.dialog.refresh_from_db()
        self.llm, self.other = self.other, self.dialog.llm
        change_llm(dialog=self.dialog, llm=self.llm)

    @rule(size=st.sampled_from([1, 10, 40]))
    def have_a_reminder_written(self, size: int) -> None:
        self._play(self._calling(self._noting()), {"text": long_text(self._next(), size)})
        post_message(dialog=self.dialog, content=f"Remember {self._next()}.")
        drive_until_idle(self.dialog)

    @rule()
    def hear_a_long_answer(self) -> None:
        words = [f"{word} " for word in long_text(self._next(), 110).split()]
        self._play({"text": words}, {"text": "and so it ended."})
        post_message(dialog=self.dialog, content=f"Tell me everything about {self._next()}.")
        drive_until_idle(self.dialog)

    @rule(keep=st.booleans())
    def compact(self, keep: bool) -> None:
        before = texts(self.dialog)
        run = self._queue()
        if run is None:
            return
        perform(run.pk, embedder="static")
        run.refresh_from_db()
        if run.status != Status.APPLIED:
            assert texts(self.dialog) == before
        elif not keep:
            undo(dialog=self.dialog, run_id=run.pk, by=self.alice)
            assert texts(self.dialog) == before

    @rule()
    def be_killed_while_compacting(self) -> None:
        run = self._queue()
        if run is None:
            return
        dead = claim_run(run.pk)
        assert dead is not None
        CompactionRun.objects.filter(pk=run.pk).update(claimed_until=timezone.now() - timedelta(seconds=1))
        perform(run.pk, embedder="static")
        ended = CompactionRun.objects.get(pk=run.pk)
        assert finish_run(dead, status=Status.APPLIED, facts={"view": []}) is None
        assert CompactionRun.objects.get(pk=run.pk).view == ended.view

    @precondition(lambda self: self._holds() is not None)
    @rule()
    def undo_what_holds(self) -> None:
        run_id = self._holds()
        assert run_id is not None
        undo(dialog=self.dialog, run_id=run_id, by=self.alice)
        assert self._holds() != run_id

    @precondition(lambda self: self._newest(Status.UNDONE) is not None)
    @rule()
    def redo_the_newest(self) -> None:
        run = self._newest(Status.UNDONE)
        assert run is not None
        try:
            redo(dialog=self.dialog, run_id=run.pk, by=self.alice)
        except DialogError:
            return
        assert self._holds() == run.pk

    @rule(pick=st.integers(min_value=0, max_value=50))
    def look_at_another_version(self, pick: int) -> None:
        others = Message.objects.filter(dialog=self.dialog, origin=MessageOrigin.TYPED).order_by("pk")
        try:
            choose_branch(dialog=self.dialog, message=others[pick % len(others)])
        except DialogError:
            return

    @rule(pick=st.integers(min_value=0, max_value=50), priority=st.sampled_from([None, 1, 2]))
    def pin(self, pick: int, priority: int | None) -> None:
        """What a person sees, which the prompts that Dominds inserts are not."""
        seen = [message for message in self._branch() if message.origin not in INSERTED]
        ids = [message.pk for message in seen if message.content and len(message.content) < 600]
        if not ids or MessageMark.objects.filter(message__dialog=self.dialog).count() >= 4:
            return
        marked = ids[pick % len(ids)]
        if priority is None:
            set_pin(dialog=self.dialog, message_id=marked, pinned=True)
        else:
            set_priority(dialog=self.dialog, message_id=marked, priority=str(priority))

    @rule()
    def begin_a_course(self) -> None:
        try:
            start_course(dialog=self.dialog)
        except DialogError:
            return

    @rule(size=SIZES)
    def say_it_anew(self, size: int) -> None:
        typed = [message for message in self._branch() if message.origin == MessageOrigin.TYPED]
        if not typed:
            return
        self._play({"text": long_text(self._next(), size)})
        try:
            edit_message(dialog=self.dialog, message=typed[-1], content=f"Rather {self._next()}.")
        except DialogError:
            return
        drive_until_idle(self.dialog)

    # --- what holds ---

    @invariant()
    def all_of_it_holds(self) -> None:
        """One look for all of them: to read what would be sent costs as much as many an event."""
        now = self._look()
        self.messages_are_only_ever_added()
        self.no_request_was_invalid()
        self.every_request_can_be_sent_to_strict_templates()
        self.instructions_and_reminders_are_in_every_request(now)
        self.what_is_marked_is_sent_word_for_word(now)
        self.the_last_words_of_the_person_are_sent(now)
        self.what_was_laid_down_is_sent(now)
        assert now.seqs == sorted(now.seqs), "what is sent does not stand in order"
        self.no_call_was_made_twice()
        self.every_view_can_be_explained()
        self.nobody_is_left_waiting()

    def messages_are_only_ever_added(self) -> None:
        now = dict(Message.objects.filter(dialog=self.dialog).values_list("pk", "content"))
        assert all(now.get(pk) == content for pk, content in self.said.items())
        self.said = now

    def no_request_was_invalid(self) -> None:
        refused = Generation.objects.filter(dialog=self.dialog, error_code="request_refused").first()
        assert refused is None, refused.error_message

    def every_request_can_be_sent_to_strict_templates(self) -> None:
        """In the shape that a server asks for by its refusal."""
        for request in self.untried:
            messages = [_on_the_wire(one) for one in request["messages"]]
            for name, refuses in TEMPLATES.items():
                told = messages if name in WITH_TOOLS else without_calls(messages)
                sent = shaped(told, "no_system" if name == "gemma 2" else "strict")
                assert refuses([wire_message(one) for one in sent], request["tools"]) == "", name
        self.untried = []

    def instructions_and_reminders_are_in_every_request(self, now: Now) -> None:
        for request in self.requests:
            system = request["messages"][0]
            assert system["role"] == "system"
            assert "Rule 7 holds." in system["content"]
        # In the system message, or until that is written anew in the call that added it.
        reminders = Reminder.objects.filter(dialog=self.dialog, removed_at=None)
        assert all(reminder.content in "\n".join(now.request) for reminder in reminders)

    def what_is_marked_is_sent_word_for_word(self, now: Now) -> None:
        here, sent = {message.pk for message in now.branch}, "\n".join(now.request)
        for mark in MessageMark.objects.filter(message_id__in=here).select_related("message"):
            if (mark.pinned or mark.priority == 1) and mark.marked_at < self._compacted_at():
                assert mark.message.content in sent

    def the_last_words_of_the_person_are_sent(self, now: Now) -> None:
        """And, where nothing is compacted, all that has had no answer, in an earlier course too."""
        typed, sent = [one for one in now.branch if one.origin == MessageOrigin.TYPED], "\n".join(now.request)
        assert not typed or typed[-1].content in sent
        if self._holds() is None:
            assert all(one.content in sent for one in unanswered(self.dialog) if len(one.content) < SHORT)

    def what_was_laid_down_is_sent(self, now: Now) -> None:
        assert RULE in "\n".join(now.request)

    def no_call_was_made_twice(self) -> None:
        calls = list(ToolCall.objects.filter(message__dialog=self.dialog).values_list("call_id", flat=True))
        assert len(calls) == len(set(calls))
        assert Reminder.objects.filter(dialog=self.dialog).count() <= len(calls)

    def every_view_can_be_explained(self) -> None:
        for run in CompactionRun.objects.filter(dialog=self.dialog, status=Status.APPLIED):
            ids = {entry["message"] for entry in run.view if "message" in entry}
            covered = {pk for entry in run.view for pk in entry.get("covers", ())}
            assert ids | covered | set(run.removed) <= set(self.said)

    def nobody_is_left_waiting(self) -> None:
        assert not self.dialog.is_busy
        assert not CompactionRun.objects.filter(dialog=self.dialog, status__in=("queued", "running")).exists()

    # --- helpers ---

    def _next(self) -> int:
        self.number += 1
        return self.number

    def _noting(self) -> dict[str, str]:
        return a_call("add_reminder", json.dumps({"content": long_text(self._next(), 1)}), f"call-{self._next()}")

    def _calling(self, *calls: dict[str, str]) -> dict[str, Any]:
        return {"text": "", "tool_calls": list(calls), "finish": "tool_calls"}

    def _work(self) -> None:
        """A request that takes three rounds of tools."""
        self._play(*(self._calling(self._noting()) for _ in range(3)), {"text": long_text(self._next(), 6)})
        post_message(dialog=self.dialog, content=f"Work {self._next()}.")

    def _drive_until(
        self, at: int, happen: Callable[[], Awaitable[None]], *, is_done: bool = False, times: int = 1
    ) -> None:
        """Until it rests. Something happens beside what the driver does `at` the first time, and so many times."""
        perform, done = driver.perform, 0

        async def performed(*args: Any) -> bool:
            nonlocal done
            done += 1
            is_now = at <= done < at + times
            if is_now and not is_done:
                await happen()
            is_more = await perform(*args)
            if is_now and is_done:
                await happen()
            return is_more

        with patch.object(driver, "perform", performed):
            drive_until_idle(self.dialog)

    def _play(self, *steps: dict[str, Any]) -> None:
        self._read_requests()
        path = Path(settings.DOMINDS_DATA_DIR) / f"{uuid4().hex}.json"
        path.write_text(json.dumps({"steps": steps}))
        Provider.objects.filter(pk=self.provider.pk).update(base_url=path.name)
        self.log = path.with_name(f"{path.name}.requests.jsonl")

    def _read_requests(self) -> None:
        log: Path | None = getattr(self, "log", None)
        if log and log.exists():
            self.requests = [json.loads(line) for line in log.read_text().splitlines()]
            self.untried = self.requests

    def _queue(self) -> CompactionRun | None:
        self.dialog.refresh_from_db()
        limit = by_limit(self.dialog)
        try:
            return queue_run(self.dialog, guard=limit, trigger="manual", requested_by=self.alice)
        except DialogError:
            return None

    def _holds(self) -> int | None:
        self.dialog.refresh_from_db()
        return present_context(self.dialog).run_id

    def _newest(self, status: str) -> CompactionRun | None:
        return CompactionRun.objects.filter(dialog=self.dialog, status=status).order_by("-id").first()

    def _branch(self) -> Sequence[Message]:
        self.dialog.refresh_from_db()
        return present_context(self.dialog).branch

    def _look(self) -> Now:
        self.dialog.refresh_from_db()
        context = present_context(self.dialog)
        return Now(
            branch=context.branch,
            request=[
                "\n".join([message.content, *(call.arguments for call in message.tool_calls)])
                for message in chat_request(context).messages
            ],
            seqs=[piece.message.seq for piece in context.pieces if piece.message],
        )

    def _compacted_at(self) -> Any:
        """Marks made after the view was made hold from the next compaction on."""
        run_id = self._holds()
        return CompactionRun.objects.get(pk=run_id).queued_at if run_id else timezone.now() + timedelta(days=1)


def _on_the_wire(logged: dict[str, Any]) -> ChatMessage:
    calls = tuple(CallOnTheWire(**call) for call in logged["tool_calls"])
    return ChatMessage(**logged | {"parts": tuple(logged["parts"]), "tool_calls": calls})
