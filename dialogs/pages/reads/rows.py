"""The rows of a transcript. A row's `key` changes whenever its HTML would: a browser gets only rows with new keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import ClassVar

from django.utils.functional import Promise
from django.utils.translation import gettext as _

from dialogs.common.errors import headline
from dialogs.compaction.reads.compaction import OVERFLOWS, can_be_reported
from dialogs.compaction.reads.compaction_rows import CompactionRow
from dialogs.llms.windows import lowered, most_asked
from dialogs.models import Generation, Message, MessageMark, QueuedMessage, RemediationPrompt
from dialogs.models.message import BY_PEOPLE, INSERTED, MessageOrigin, Role
from dialogs.transcript.attachments import Attachment
from dialogs.transcript.model_view import kept_since, load
from dialogs.transcript.reads.tool_calls import CallRow
from health.models import CompactionRun

# Texts with more characters or lines are folded; the limits are higher for texts of people.
ASIDE_FOLDED_ABOVE = (240, 3)
SAID_FOLDED_ABOVE = (2_000, 30)
# The finish reason of an answer that `dialogs.driver.writes.cutting` cut.
CUT = "compaction"
# Finish reasons of answers that broke off.
ENDED_EARLY = ("length", "context_window", "content_filter")


def _is_longer(text: str, than: tuple[int, int]) -> bool:
    chars, breaks = than
    return len(text) > chars or text.count("\n") > breaks


@dataclass(frozen=True, kw_only=True)
class MessageRow:
    kind: ClassVar[str] = "message"
    message: Message
    generation: Generation | None = None
    calls: tuple[CallRow, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    # All versions of the message, oldest first.
    versions: tuple[int, ...]
    is_last_user: bool = False
    is_last_answer: bool = False
    # The message stands in the course that goes on: a person may mark it, compact up to it, bring it back.
    is_current: bool = False
    # How the model sees it, and its calls' results, where it does not see them as they are.
    visibility: Visibility | None = None
    has_shortened_results: bool = False
    # The answer was cut for a compaction, and another message goes on with it; or this message is the one that does.
    is_to_be_continued: bool = False
    continues: tuple[str, ...] = ()
    # The share of the limit that pinned messages take, if that is too much and this one was pinned last.
    pinned_share: float | None = None

    @property
    def dom_id(self) -> str:
        return f"message-{self.message.pk}"

    @property
    def key(self) -> str:
        calls = ",".join(call.key for call in self.calls)
        curated = self.prompt.curated if self.prompt else ""
        marked = f"{self.mark.pinned}{self.mark.priority}{self.mark.area}" if self.mark else ""
        seen = f"{self.visibility}/{self.has_shortened_results}/{self.is_to_be_continued}/{self.pinned_share}"
        place = f"{self.is_read_in_part}/{self.position}/{self.siblings}/{self.is_last_user}/{self.is_last_answer}"
        return f"{place}/{curated}/{calls}/{marked}/{seen}"

    @property
    def classes(self) -> str:
        true = {
            "inserted": self.is_inserted,
            "cut-short": self.is_cut_by_person,
            "removed": self.is_archived,
            "to-be-continued": self.is_to_be_continued,
            "continuing": bool(self.continues),
        }
        return " ".join(("message-row", self.message.role, *(name for name, is_so in true.items() if is_so)))

    @property
    def has_remarks(self) -> bool:
        """Does the row's foot show more than an ordinary message's?"""
        return bool(self.is_special or self.visibility is not None)

    @property
    def is_special(self) -> bool:
        """Is it marked or cut, or does the model not see its results completely?"""
        ended = self.generation.finish_reason if self.generation else ""
        is_cut = self.message.cut_short or ended in ENDED_EARLY or self.is_read_in_part
        return bool(self.mark or self.has_shortened_results or is_cut)

    @property
    def is_plain(self) -> bool:
        """Is it a text like most, without anything special?"""
        has_more = self.calls or self.attachments or self.continues or self.reasoning or self.prompt or self.is_folded
        is_last = self.is_last_user or self.is_last_answer or self.is_to_be_continued
        is_other = has_more or is_last or self.is_special or self.pinned_share or len(self.versions) > 1
        return bool(self.message.content and not is_other)

    # Where there is none, the database's own look for it takes long, and a row asks ten times.
    @cached_property
    def mark(self) -> MessageMark | None:
        return getattr(self.message, "mark", None)

    @property
    def reasoning(self) -> str:
        """What a model thought before it answered."""
        return str(self.message.parts.get("reasoning", ""))

    @property
    def source(self) -> str:
        """The text as it was written; of an answer that was cut, all of it."""
        return "".join((*self.continues, self.message.content))

    @property
    def is_cut_by_person(self) -> bool:
        """Was it stopped or broken off? Not: cut for a compaction and continued."""
        cut_for_room = self.generation is not None and self.generation.finish_reason == CUT
        return self.message.cut_short and not cut_for_room

    @property
    def is_read_in_part(self) -> bool:
        """The server was found to have read only a part of the prompt that this answers."""
        return bool(self.generation and self.generation.manifest.get("cut"))

    @property
    def was_asked_again(self) -> bool:
        """Was it asked for again by itself, after a compaction, because the prompt had been read in part?"""
        return bool(self.generation and self.generation.manifest.get("asked_again"))

    @property
    def lowered(self) -> tuple[int, int] | None:
        return lowered(self.generation)

    @property
    def most_asked(self) -> int | None:
        return most_asked(self.generation)

    @property
    def is_archived(self) -> bool:
        """Is it a message of a person or the agent that the model no longer sees? Inserted messages expire by
        themselves."""
        is_something = bool(self.message.content or self.calls)
        return self.visibility == Visibility.REMOVED and is_something and self.message.origin not in INSERTED

    @property
    def is_shortened(self) -> bool:
        return self.visibility == Visibility.SHORTENED or self.has_shortened_results

    @property
    def pinned_percent(self) -> int:
        return round(100 * (self.pinned_share or 0))

    @property
    def can_be_marked(self) -> bool:
        return self.is_current and self.message.origin not in INSERTED

    @cached_property
    def prompt(self) -> RemediationPrompt | None:
        """What this message asks of the agent, or the notice that it carried."""
        return getattr(self.message, "remediation_prompt", None)

    @cached_property
    def is_inserted(self) -> bool:
        """Was it inserted by Dominds, with role user?"""
        return self.message.role == Role.USER and self.message.origin not in BY_PEOPLE

    @property
    def is_marked(self) -> bool:
        """Does the row name its speaker? For system and tool messages, and for a client's answers and named
        messages."""
        return self.message.role in (Role.SYSTEM, Role.TOOL) or (
            self.message.origin == MessageOrigin.CLIENT
            and (self.message.role == Role.ASSISTANT or "name" in self.message.parts.get("wire", {}))
        )

    @property
    def is_prose(self) -> bool:
        return self.message.role == Role.ASSISTANT

    @property
    def is_past_editing(self) -> bool:
        """Did a person type it, and is it no longer the last one, which can be edited?"""
        return self.message.origin == MessageOrigin.TYPED and not self.is_last_user

    @property
    def has_text(self) -> bool:
        """Is there a text to show? An answer that is empty and has no calls shows that it is empty."""
        return bool(self.message.content) or not (self.calls or self.attachments or self.continues)

    @property
    def is_folded(self) -> bool:
        is_said = self.message.role == Role.USER and not self.is_inserted
        limit = SAID_FOLDED_ABOVE if is_said else ASIDE_FOLDED_ABOVE
        return not self.is_prose and _is_longer(self.message.content, limit)

    @property
    def siblings(self) -> int:
        return len(self.versions)

    @property
    def position(self) -> int:
        return self.versions.index(self.message.pk) + 1

    @property
    def previous_id(self) -> int | None:
        return self.versions[self.position - 2] if self.position > 1 else None

    @property
    def next_id(self) -> int | None:
        return self.versions[self.position] if self.position < self.siblings else None


@dataclass(frozen=True, kw_only=True)
class AttemptRow:
    """A generation without a message: it failed, was interrupted, or was stopped before the first word."""

    kind: ClassVar[str] = "attempt"
    generation: Generation
    can_retry: bool
    # The person's last message, which can be edited because it has no answer.
    editable: int | None = None

    @property
    def dom_id(self) -> str:
        return f"attempt-{self.generation.pk}"

    @property
    def key(self) -> str:
        return f"{self.generation.status}/{self.can_retry}"

    @property
    def can_report(self) -> bool:
        return self.can_retry and can_be_reported(self.generation)

    @property
    def to_shorten(self) -> int | None:
        """The message to shorten, where nothing else helps."""
        is_too_long = self.generation.error_code in OVERFLOWS and not can_be_reported(self.generation)
        return self.editable if self.can_retry and is_too_long else None

    @property
    def headline(self) -> str | Promise:
        if self.generation.error_code == "provider_unreachable" and self.generation.partial_text:
            return _("The connection to the provider broke in the middle of the answer.")
        return headline(self.generation.error_code) if self.generation.error_code else ""


@dataclass(frozen=True, kw_only=True)
class UnansweredRow:
    """The last typed message was never asked of a provider, and no answer is due: a person stopped it before, say."""

    kind: ClassVar[str] = "unanswered"
    dom_id: ClassVar[str] = "unanswered"
    key: ClassVar[str] = ""


@dataclass(frozen=True, kw_only=True)
class LiveRow:
    kind: ClassVar[str] = "live"
    generation: Generation
    # The text goes on with an answer that was cut for a compaction.
    continues: bool = False
    dom_id: ClassVar[str] = "live"

    @property
    def key(self) -> str:
        return str(self.generation.pk)


@dataclass(frozen=True, kw_only=True)
class QueuedRow:
    kind: ClassVar[str] = "queued"
    queued: QueuedMessage
    key: ClassVar[str] = ""

    @property
    def dom_id(self) -> str:
        return f"queued-{self.queued.pk}"

    @property
    def is_folded(self) -> bool:
        return _is_longer(self.queued.content, SAID_FOLDED_ABOVE)


Row = MessageRow | AttemptRow | UnansweredRow | CompactionRow | LiveRow | QueuedRow


class Visibility(StrEnum):
    """How the model sees a message that it does not see as it is. The archive has all of it."""

    REMOVED = "removed"
    SHORTENED = "shortened"


def hidden_or_shortened(run: CompactionRun | None, branch: Sequence[int]) -> dict[int, Visibility]:
    """By message id, of a branch given by its ids, oldest first, on which the view of this run holds.

    Tools' results are messages too.
    """
    if run is None:
        return {}
    shown = [pk for ids in kept_since(run, branch) for pk in ids]
    shortened = {entry.message_id: entry.content is not None for entry in load(run.view)} | dict.fromkeys(shown, False)
    covered = branch[: branch.index(run.leaf_id) + 1]
    found = {pk: Visibility.SHORTENED if shortened.get(pk) else Visibility.REMOVED for pk in covered}
    return {pk: visibility for pk, visibility in found.items() if shortened.get(pk, True)}
