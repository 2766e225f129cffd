"""The rows of a transcript. A row's `key` changes whenever its HTML would: a browser is sent only what is new to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from django.utils.functional import Promise
from django.utils.translation import gettext as _

from dialogs.errors import headline
from dialogs.models import Generation, Message, QueuedMessage, RemediationPrompt
from dialogs.models.message import MessageOrigin, Role
from dialogs.selectors.call_rows import CallRow

# A longer text that nobody typed is folded.
FOLDED_ABOVE = 240


@dataclass(frozen=True, kw_only=True)
class MessageRow:
    kind: ClassVar[str] = "message"
    message: Message
    generation: Generation | None = None
    calls: tuple[CallRow, ...] = ()
    # All versions of the message, oldest first.
    versions: tuple[int, ...]
    is_last_user: bool = False
    is_last_answer: bool = False

    @property
    def dom_id(self) -> str:
        return f"message-{self.message.pk}"

    @property
    def key(self) -> str:
        calls = ",".join(call.key for call in self.calls)
        curated = self.prompt.curated if self.prompt else ""
        return f"{self.position}/{self.siblings}/{self.is_last_user}/{self.is_last_answer}/{curated}/{calls}"

    @property
    def prompt(self) -> RemediationPrompt | None:
        """What this message asks of the agent, or the notice that it carried."""
        return getattr(self.message, "remediation_prompt", None)

    @property
    def is_inserted(self) -> bool:
        """Said by Dominds itself, in the place of a person."""
        return self.message.role == Role.USER and self.message.origin != MessageOrigin.TYPED

    @property
    def is_folded(self) -> bool:
        return self.is_inserted and (len(self.message.content) > FOLDED_ABOVE or self.message.content.count("\n") > 3)

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
    """A try that brought no message: it failed, was interrupted, or was stopped before the first word."""

    kind: ClassVar[str] = "attempt"
    generation: Generation
    can_retry: bool

    @property
    def dom_id(self) -> str:
        return f"attempt-{self.generation.pk}"

    @property
    def key(self) -> str:
        return f"{self.generation.status}/{self.can_retry}"

    @property
    def headline(self) -> str | Promise:
        if self.generation.error_code == "provider_unreachable" and self.generation.partial_text:
            return _("The connection to the provider broke in the middle of the answer.")
        return headline(self.generation.error_code) if self.generation.error_code else ""


@dataclass(frozen=True, kw_only=True)
class LiveRow:
    kind: ClassVar[str] = "live"
    generation: Generation
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


Row = MessageRow | AttemptRow | LiveRow | QueuedRow
