"""The beginning of every request: rules by hand, goal, Taskdoc, reminders, as they were at the last rewrite.

A rewrite happens at a new course, a compaction, another LLM, other instructions, the start or end of a run, or when
reminders exceed their share of the room (then they are shortened). Later changes by the agent are in its own calls;
changes by a person are in a note beside the newest message. So the beginning stays the same and can be cached. It is
stored with each generation.

Also the task block below the newest message: how far the task is, labelled as data.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from typing import Any

from django.db.models import BigIntegerField, QuerySet

from dialogs.agents.reads import ReminderInRequest, reminders_of, share_passed, within_share
from dialogs.llms.guard import Guard, guard_of
from dialogs.models import Blob, Dialog, Generation, Message, ToolCall
from dialogs.models.message import Role
from dialogs.transcript import standing_rules
from dialogs.transcript.reads.autonomous import active_run
from dialogs.transcript.reads.tool_calls import offers_tools
from dialogs.turns.prompts import prompt
from dominds.prepared import prepared
from health.compaction.snapshot import from_json

# The most characters of a note on changes; instead of a longer one the beginning is rewritten.
NOTE_CHARS = 4_000
ADDED = re.compile(r"Reminder (\d+) is added")


@dataclass(frozen=True, kw_only=True)
class StandingTexts:
    rules: tuple[str, ...] = ()
    taken_back: tuple[str, ...] = ()
    goal: str = ""
    taskdoc: str = ""
    reminders: tuple[ReminderInRequest, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Beginning:
    """`since` is the `seq` of the message that the first request of this beginning answered."""

    first: StandingTexts
    since: int = 0
    key: Mapping[str, Any] = field(default_factory=dict)
    changed: str = ""

    @property
    def kept(self) -> str:
        """The beginning as JSON for a generation's row."""
        told = {"key": self.key, "since": self.since, "first": asdict(self.first)}
        return json.dumps(told, ensure_ascii=False, sort_keys=True)


def standing_now(dialog: Dialog) -> StandingTexts:
    """Rules, goal, Taskdoc and reminders as a new beginning tells them: reminders above their share of the room are
    shortened."""
    return _told(_standing(dialog), dialog)


def _told(now: StandingTexts, dialog: Dialog) -> StandingTexts:
    return replace(now, reminders=within_share(dialog, now.reminders))


def _standing(dialog: Dialog) -> StandingTexts:
    """A client's dialog has only rules by hand and, if its key offers them, reminders."""
    rules = standing_rules.load(dialog.standing_rules)
    laid_down = StandingTexts(rules=standing_rules.holding(rules), taken_back=standing_rules.taken_back(rules))
    if dialog.is_client_driven:
        return replace(laid_down, reminders=reminders_of(dialog)) if dialog.client.offers_recall else laid_down
    run = active_run(dialog)
    return replace(
        laid_down, goal=run.goal if run else "", taskdoc=dialog.taskdoc.strip(), reminders=reminders_of(dialog)
    )


def beginning_of(
    dialog: Dialog, branch: Sequence[Message], calls: Mapping[int, Sequence[ToolCall]], *, view: int | None
) -> Beginning:
    """The beginning of the newest request of this course, where nothing was rewritten since; else a new beginning of
    what stands now."""
    now = _standing(dialog)
    if dialog.is_client_driven or not branch:
        return Beginning(first=_told(now, dialog))
    key, before = _key(dialog, now, view), _before(branch)
    if before is None or before.key != key:
        return _anew(dialog, now, branch, key)
    results = {one.pk: one.content for one in branch if one.role == Role.TOOL}
    made = (call for one in branch if one.seq > before.since for call in calls.get(one.pk, ()))
    changed = _note(_after(before.first, made, results), now, dialog.work_language)
    return _anew(dialog, now, branch, key) if len(changed) > NOTE_CHARS else replace(before, changed=changed)


def _anew(dialog: Dialog, now: StandingTexts, branch: Sequence[Message], key: Mapping[str, Any]) -> Beginning:
    return Beginning(first=_told(now, dialog), since=branch[-1].seq, key=key)


def _key(dialog: Dialog, now: StandingTexts, view: int | None) -> dict[str, Any]:
    """What a beginning depends on: another key causes a rewrite."""
    return {
        "dialog": str(dialog.pk),
        "view": view,
        "llm": dialog.llm_id,
        "tools": offers_tools(dialog.llm),
        "language": dialog.work_language,
        "run": bool(now.goal),
        "shortened": share_passed(dialog, now.reminders) is not None,
        "instructions": sha256(dialog.agent.instructions.encode()).hexdigest(),
    }


def _before(branch: Sequence[Message]) -> Beginning | None:
    """The beginning of the newest request of this branch."""
    leaf, kept = _newest_of.first(branch[-1].course_id) or (None, None)
    if not kept or leaf not in {message.pk for message in branch}:
        return None
    return _read(Blob.objects.filter(pk=kept).values_list("content", flat=True).first() or "")


@prepared(BigIntegerField())
def _newest_of(course_id: Any) -> QuerySet[Generation, Any]:
    # By number, which has an index; by id, a course without any would cause a scan.
    newest = Generation.objects.filter(course_id=course_id).order_by("-number")
    return newest.values_list("prompt_leaf_id", "manifest__begins")[:1]


def _read(kept: str) -> Beginning | None:
    """Read a stored beginning. None where the JSON is not ours: imported files may hold anything."""
    try:
        row = json.loads(kept)
        first = row["first"]
        lists = {name: tuple(first[name]) for name in ("rules", "taken_back")}
        reminders = tuple(_reminder(*one) for one in first["reminders"])
        standing = StandingTexts(**lists, goal=first["goal"], taskdoc=first["taskdoc"], reminders=reminders)
        return Beginning(first=standing, since=int(row["since"]), key=row["key"])
    except (ValueError, KeyError, TypeError):
        return None


def _reminder(number: int, content: str, left: str | None = None) -> ReminderInRequest:
    return ReminderInRequest(int(number), str(content), None if left is None else str(left))


def _after(first: StandingTexts, calls: Iterable[ToolCall], results: Mapping[int, str]) -> StandingTexts:
    """What the agent knows to stand first, after the calls that it made since. `results` are texts by the id of their
    message."""
    reminders, taskdoc = _contents(first), first.taskdoc
    for call in calls:
        if call.status != ToolCall.Status.DONE:
            continue
        told = json.loads(call.arguments or "{}")
        if call.name == "update_taskdoc":
            taskdoc = _clean(told["content"])
        elif call.name == "delete_reminder":
            reminders.pop(told["number"], None)
        elif call.name == "update_reminder":
            reminders[told["number"]] = _clean(told["content"])
        elif call.name == "add_reminder" and (added := ADDED.search(_result(call, results))):
            reminders[int(added[1])] = _clean(told["content"])
    return replace(first, taskdoc=taskdoc, reminders=tuple(ReminderInRequest(*one) for one in reminders.items()))


def _contents(standing: StandingTexts) -> dict[int, str]:
    return {one.number: one.content for one in standing.reminders}


def _result(call: ToolCall, results: Mapping[int, str]) -> str:
    return call.result or results.get(call.result_message_id or 0, "")


def _clean(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()


def _note(told: StandingTexts, now: StandingTexts, language: str) -> str:
    """What a person changed in rules, Taskdoc and reminders, as the agent reads it; empty where nothing was changed."""
    known, kept = _contents(told), _contents(now)
    values = {
        "rules": [rule for rule in now.rules if rule not in told.rules],
        "taken_back": [rule for rule in (*now.taken_back, *told.rules) if _is_out_of_force(rule, told, now)],
        "goal": now.goal if now.goal != told.goal else "",
        "taskdoc": now.taskdoc if now.taskdoc != told.taskdoc else "",
        "is_emptied": bool(told.taskdoc and not now.taskdoc),
        "reminders": [one for one in now.reminders if known.get(one.number) != one.content],
        "removed": [number for number in known if number not in kept],
    }
    return prompt("changed", language=language, **values) if any(values.values()) else ""


def _is_out_of_force(rule: str, told: StandingTexts, now: StandingTexts) -> bool:
    return rule not in now.rules and rule not in told.taken_back


WINDOW = "sliding_window"


def task_block(dialog: Dialog, guard: Guard | None) -> str:
    """Empty where nobody is guarded, so that requests stay as they are, and where a client drives the dialog.

    `guard` is the dialog's, where the caller knows it already.
    """
    snapshot = None if dialog.is_client_driven else from_json(dialog.task_snapshot)
    guard = guard or (guard_of(dialog) if snapshot else None)
    if snapshot is None or guard is None or guard.off or WINDOW not in guard.chain:
        return ""
    return snapshot.block(limits=guard.config.payloads)
