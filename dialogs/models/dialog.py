"""A dialog with its courses, autonomous runs and changes of view; and the conversation of a client.

The driver's columns are here too. Work is due while `wake_seq > handled_seq`. A worker claims the dialog by a
conditional update that raises `lease_token`; writes with an older token are refused.
"""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from dialogs.models.llm import Compaction

COUNTDOWN_TURNS = 5


class WorkLanguage(models.TextChoices):
    """The language in which Dominds speaks to the agent. The interface's is the person's own."""

    ENGLISH = "en", "English"
    CHINESE = "zh-hans", "简体中文"


class PausedBy(models.TextChoices):
    """Why the driver does nothing by itself until a person writes or resumes the dialog."""

    NOBODY = "", ""
    PERSON = "person", _("a person")
    FAILURE = "failure", _("a failure")
    ROUNDS = "rounds", _("too many tool rounds")
    PROMPTS = "prompts", _("too many automatic prompts")
    # A new course would not help: what is carried into it does not fit already.
    FULL = "full", _("reminders and Taskdoc that fill the window")
    LOOP = "loop", _("an agent that goes round in circles")
    LIMIT = "limit", _("an autonomous run that used all its generations")
    OWNER = "owner", _("an account that was switched off")


class OwnTools(models.TextChoices):
    """Whether the agent is offered Dominds' own tools, such as those for reminders."""

    AUTOMATIC = "automatic", _("as the room allows")
    ON = "on", _("all of them")
    OFF = "off", _("none")


class Stop(models.TextChoices):
    """The stops of a sample's tour; their texts are in `dialogs.sample.reads`."""

    NO_SAMPLE = "", ""
    METER = "meter", "meter"
    RISE = "rise", "rise"
    COMPACTION = "compaction", "compaction"
    DIVIDER = "divider", "divider"
    LOST = "lost", "lost"
    UNDO = "undo", "undo"
    REDO = "redo", "redo"
    ARCHIVE = "archive", "archive"
    RECALL = "recall", "recall"
    CLOSED = "closed", "closed"


class Dialog(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="dialogs")
    agent = models.ForeignKey("dialogs.Agent", on_delete=models.PROTECT, related_name="dialogs")
    # The LLM in use. It starts as the agent's and may be changed in mid-dialog.
    llm = models.ForeignKey("dialogs.LLM", on_delete=models.PROTECT, related_name="dialogs")
    # The LLM to switch to after the compaction under way, because it has less room than the present one.
    llm_after = models.ForeignKey(
        "dialogs.LLM", on_delete=models.SET_NULL, null=True, blank=True, related_name="+", editable=False
    )
    title = models.CharField(_("title"), max_length=200, blank=True)
    # A client drives it through `/v1` (`ClientConversation`); on the pages it is read-only.
    is_client_driven = models.BooleanField(default=False, editable=False)
    # While False, the title is made from the first message.
    titled_by_person = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)
    active_at = models.DateTimeField(_("last activity"))
    archived_at = models.DateTimeField(null=True, blank=True)
    trashed_at = models.DateTimeField(null=True, blank=True)

    # The standing description of the task: the agent sees it in every course.
    taskdoc = models.TextField(blank=True)
    # Raised by every change of the Taskdoc, so that two editors notice each other.
    taskdoc_version = models.PositiveIntegerField(default=1)
    # Rules that a person laid down or took back by hand, as `dialogs.transcript.standing_rules` writes them.
    standing_rules = models.JSONField(default=list, blank=True, editable=False)
    # A `health.compaction.snapshot.TaskSnapshot` as JSON; empty until a task begins.
    task_snapshot = models.JSONField(default=dict, blank=True, editable=False)
    compaction = models.CharField(_("compaction"), max_length=20, choices=Compaction, default=Compaction.AUTOMATIC)
    work_language = models.CharField(max_length=10, choices=WorkLanguage, default=WorkLanguage.ENGLISH)
    own_tools = models.CharField(max_length=10, choices=OwnTools, default=OwnTools.AUTOMATIC)

    # The current stop of the tour; only in a sample.
    tour = models.CharField(max_length=12, choices=Stop, default=Stop.NO_SAMPLE, blank=True, editable=False)

    current_leaf = models.ForeignKey("dialogs.Message", on_delete=models.SET_NULL, null=True, related_name="+")
    # The hash of the newest typed message and its form's token: an equal one was sent twice.
    last_sent = models.CharField(max_length=64, blank=True, editable=False)
    last_seq = models.PositiveIntegerField(default=0)
    # Raised by every change that a browser should see; a socket consumer with an older version reads again.
    version = models.PositiveBigIntegerField(default=1)

    wake_seq = models.PositiveBigIntegerField(default=0)
    handled_seq = models.PositiveBigIntegerField(default=0)
    lease_token = models.PositiveBigIntegerField(default=0)
    lease_until = models.DateTimeField(null=True, blank=True)
    # An answer to the current leaf is wanted: set by posting, editing, retrying; cleared when one is recorded,
    # stopped or given up.
    answer_due = models.BooleanField(default=False)
    # The answer's place in the queue for a slot of its provider; 1 is the next.
    place_in_line = models.PositiveIntegerField(null=True, blank=True, editable=False)
    # Set by the stop button, cleared by the worker that obeys.
    stop_requested = models.BooleanField(default=False)
    # While set, no prompt is inserted, no course is cleared and nothing is pushed. Messages are still answered.
    paused_by = models.CharField(max_length=20, choices=PausedBy, default=PausedBy.NOBODY, blank=True)
    # How many slices failed since a person typed something or a run pushed on; and how many in a row recorded nothing,
    # because their worker died. Three of either end the turn.
    crashes = models.PositiveSmallIntegerField(default=0, editable=False)
    deaths = models.PositiveSmallIntegerField(default=0, editable=False)
    # `last_seq` when a person last wrote or resumed the dialog, or a run pushed on. Tool rounds and automatic prompts
    # are counted from there.
    counted_from = models.PositiveIntegerField(default=0, editable=False)
    # `last_seq` when the slice under way was claimed. Null: none is, or it has recorded how it ended.
    slice_seq = models.PositiveIntegerField(null=True, editable=False)
    # Tool calls, and answers without any, since the last check for loops.
    unchecked_calls = models.PositiveIntegerField(default=0, editable=False)

    class Meta:
        ordering = ("-active_at",)
        indexes = [
            models.Index(fields=["owner", "-active_at"], name="dialog_list"),
            # For the sweeper, which asks every few seconds which dialogs have work due.
            models.Index(
                fields=["lease_until"],
                name="dialog_due",
                condition=models.Q(wake_seq__gt=models.F("handled_seq")),
            ),
        ]

    def __str__(self) -> str:
        return self.title or str(self.id)

    @property
    def is_busy(self) -> bool:
        return self.wake_seq > self.handled_seq

    @property
    def is_half_imported(self) -> bool:
        """Its messages are still being written, or their import was broken off: one is shown only after the last."""
        return self.last_seq > 0 and self.current_leaf_id is None


class Course(models.Model):
    """A stretch of a dialog; the model sees the current course only."""

    class OpenedBy(models.TextChoices):
        START = "start", _("start")
        AGENT = "agent", _("agent")
        USER = "user", _("person")
        AUTO = "auto", _("countdown")
        RECOVERY = "recovery", _("recovery")

    dialog = models.ForeignKey(Dialog, on_delete=models.CASCADE, related_name="courses")
    number = models.PositiveIntegerField()
    opened_by = models.CharField(max_length=20, choices=OpenedBy, default=OpenedBy.START)
    opened_at = models.DateTimeField(auto_now_add=True)
    # What came along: {"reminders": [numbers], "taskdoc": bool, "request": message id, "questions": [ids]}.
    carried = models.JSONField(default=dict, blank=True)

    # The state of remediation (`health.monitor.remediation`). Changed in the transaction that records a generation.
    level = models.CharField(max_length=20, default="healthy")
    caution_generations = models.PositiveIntegerField(default=0)
    countdown_turns = models.PositiveSmallIntegerField(default=COUNTDOWN_TURNS)
    due = models.CharField(max_length=20, blank=True)

    # The run whose view is in force; null: all messages as they are. Changed by compare-and-swap, with a ViewChange.
    head_run = models.ForeignKey("health.CompactionRun", on_delete=models.SET_NULL, null=True, related_name="+")
    # A person undid a compaction: nothing is compacted by itself until the next message.
    guard_held = models.BooleanField(default=False)

    class Meta:
        ordering = ("number",)
        constraints = [models.UniqueConstraint(fields=["dialog", "number"], name="course_number_once")]

    def __str__(self) -> str:
        return f"{self.dialog_id} #{self.number}"


class AutonomousRun(models.Model):
    """A run of autonomous mode: after each answer the driver inserts a push, until the run ends."""

    class EndedBy(models.TextChoices):
        DONE = "done", _("the agent says it is done")
        LIMIT = "limit", _("the most generations are reached")
        PERSON = "person", _("a person ended it")

    dialog = models.ForeignKey("dialogs.Dialog", on_delete=models.CASCADE, related_name="autonomous_runs")
    goal = models.TextField()
    max_generations = models.PositiveIntegerField()
    # Counted in the transaction that records each generation.
    generations = models.PositiveIntegerField(default=0)
    # The course in which it began.
    first_course = models.PositiveIntegerField()
    started_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    ended_by = models.CharField(max_length=20, choices=EndedBy, blank=True)
    # The agent's words when it said that the goal is reached.
    summary = models.TextField(blank=True)

    class Meta:
        ordering = ("id",)
        constraints = [
            models.UniqueConstraint(
                fields=["dialog"], condition=models.Q(ended_at=None), name="one_autonomous_run_at_a_time"
            )
        ]

    def __str__(self) -> str:
        return f"run {self.pk}: {self.generations}/{self.max_generations}"


class ViewChange(models.Model):
    """One change of a course's view: applied, undone or redone. Rows are only added."""

    class Why(models.TextChoices):
        APPLIED = "applied", _("applied")
        UNDONE = "undone", _("undone")
        REDONE = "redone", _("redone")

    course = models.ForeignKey("dialogs.Course", on_delete=models.CASCADE, related_name="view_changes")
    before = models.ForeignKey("health.CompactionRun", on_delete=models.SET_NULL, null=True, related_name="+")
    after = models.ForeignKey("health.CompactionRun", on_delete=models.SET_NULL, null=True, related_name="+")
    why = models.CharField(max_length=20, choices=Why)
    # Null: the driver.
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    changed_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("id",)

    def __str__(self) -> str:
        return f"{self.course_id}: {self.why}"


class ClientConversation(models.Model):
    """The newest request of a client-driven dialog, except its messages, which are the dialog's."""

    dialog = models.OneToOneField("dialogs.Dialog", on_delete=models.CASCADE, primary_key=True, related_name="client")
    api_key = models.ForeignKey(
        "dialogs.ApiKey", on_delete=models.SET_NULL, null=True, blank=True, related_name="conversations"
    )
    # The id under which the model was asked for.
    model = models.CharField(max_length=300)
    # The client's system and developer messages before its first turn, one after another.
    instructions = models.TextField(blank=True)
    # In OpenAI's function form, as the client sent them. They run in the client.
    tools = models.JSONField(default=list, blank=True)
    # Passed on to the provider: temperature, stop, tool_choice and the like.
    options = models.JSONField(default=dict, blank=True)
    max_output_tokens = models.PositiveIntegerField(null=True, blank=True)
    offers_recall = models.BooleanField(default=False)
    # The chat's name in the client, where it says one (X-Dominds-Chat).
    chat = models.CharField(max_length=200, blank=True)
    # The newest request has all messages after the one with this `seq`; 0: the client left nothing out.
    sends_after = models.PositiveIntegerField(default=0)
    # {"first": what stands before that in the request: ids of messages, or {"role", "content", "parts"} of the client's
    # own; "shortened": ids of messages that the client has shortened, or sends without images}.
    sends_otherwise = models.JSONField(default=dict, blank=True)

    def __str__(self) -> str:
        return f"{self.model} by {self.api_key}"


class PrefixNode(models.Model):
    """A prefix of a client's history, by the hash of all its messages, and the stored message where it ends.

    A request's history is recognised by its longest stored prefix. One prefix may end in several dialogs: two requests
    that continue it at the same time become two dialogs.
    """

    # The constraint below begins with it.
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False)
    sha256 = models.CharField(max_length=64)
    message = models.ForeignKey("dialogs.Message", on_delete=models.CASCADE, related_name="prefix_nodes")

    class Meta:
        ordering = ("id",)
        constraints = [models.UniqueConstraint(fields=["owner", "sha256", "message"], name="prefix_node_once")]

    def __str__(self) -> str:
        return self.sha256[:12]
