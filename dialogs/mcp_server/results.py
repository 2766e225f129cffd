"""What each tool answers, as data. These classes are the output schemas.

Measured numbers are a provider's own, estimated ones ours; no class has both, and `basis` says which it has.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import BaseModel, Field


class DialogSummary(BaseModel):
    id: UUID
    title: str
    agent: str
    llm: str
    level: str | None = Field(description="By the newest measured reading: healthy, caution, critical or unknown.")
    busy: bool = Field(description="An answer is being made, or waits to be made.")
    client_driven: bool = Field(description="A client drives it through /v1.")
    last_activity: datetime


class Dialogs(BaseModel):
    dialogs: list[DialogSummary]
    next_cursor: str | None


class Call(BaseModel):
    name: str
    arguments: str
    status: str


class Said(BaseModel):
    id: int
    course: int
    role: str
    origin: str
    said_at: datetime
    text: str = Field(description="The beginning of it where `is_cut`; read_message gives all of it.")
    chars: int
    is_cut: bool
    archived: bool = Field(description="The model no longer sees it as it was said.")
    calls: list[Call]


class Transcript(BaseModel):
    dialog: DialogSummary
    messages: list[Said] = Field(description="Of the branch that is shown, oldest first.")
    total: int
    next_cursor: int | None = Field(description="For older messages.")


class MessageText(BaseModel):
    id: int
    text: str
    start: int
    chars: int
    next_cursor: int | None


class Found(BaseModel):
    id: int
    course: int
    role: str
    said_at: datetime
    snippet: str


class SearchHits(BaseModel):
    hits: list[Found] = Field(description="The best match first.")
    next_cursor: int | None


class Remembered(BaseModel):
    message: int
    course: int
    role: str
    said_at: datetime
    text: str


class Recalled(BaseModel):
    dialog: UUID
    passages: list[Remembered] = Field(description="From what the model no longer sees as it was said; best first.")


class Reading(BaseModel):
    course: int
    generation: int
    level: str
    reason: str = Field(description="Why the level is unknown, where it is.")
    prompt_tokens: int | None
    context_window: int | None
    percent: str
    caution_above: int | None
    critical_above: int | None
    llm: str
    read_at: datetime


class Readings(BaseModel):
    basis: Literal["measured"] = "measured"
    readings: list[Reading] = Field(description="Newest first; one for each answer of the model.")
    next_cursor: int | None = Field(description="For older readings.")


class Compaction(BaseModel):
    id: int
    status: str
    trigger: str
    in_force: bool = Field(description="Its view is what the model sees of its course.")
    estimated_before: int | None
    estimated_after: int | None
    limit: int
    messages_before: int | None
    messages_after: int | None
    recovered: str = Field(description="How it started afresh, where nothing else came under the limit.")
    reason: str
    queued_at: datetime
    finished_at: datetime | None


class Compactions(BaseModel):
    basis: Literal["estimated"] = "estimated"
    compactions: list[Compaction] = Field(description="Newest first.")
    next_cursor: int | None = Field(description="For older ones.")


class Step(BaseModel):
    name: str
    estimated_before: int
    estimated_after: int
    changed: bool
    note: str


class Covered(BaseModel):
    message: str = Field(description="The id of a message that was removed or shortened, or of an earlier summary.")
    extent: str = Field(description="How much of it was read by what replaced it.")
    read_chars: int
    total_chars: int


class Fact(BaseModel):
    text: str
    kind: str
    message: str
    kept: bool = Field(description="Another text still says it. If not, only the archive does.")


class LedgerEntry(BaseModel):
    text: str
    kind: str


class Receipt(BaseModel):
    basis: Literal["estimated"] = "estimated"
    compaction: Compaction
    steps: list[Step]
    coverage: list[Covered]
    coverage_total: int
    losses: list[Fact] = Field(description="Facts of what was removed; those that no text says any more come first.")
    losses_total: int
    ledger: list[LedgerEntry] = Field(description="What the user stated, carried on word for word.")
    ledger_total: int
    written: list[str] = Field(description="Summaries and other texts that stand for messages now.")
    written_total: int
    next_cursor: int | None
