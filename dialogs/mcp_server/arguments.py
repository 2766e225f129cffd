"""The arguments of each tool. Clients get these classes as JSON schemas.

The schemas are flat, without unions and references, which not every model understands. So "nothing" is 0 or "".
"""

from __future__ import annotations

from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, model_validator

from dialogs.transcript.search import MOST_QUOTED, QUOTED

MOST = 2**63 - 1
NEXT = "next_cursor of the page before this one; leave it out for the first page."


class Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def without_nulls(cls, found: Any) -> Any:
        """Drop nulls: models write them for arguments that they leave out."""
        return {name: value for name, value in found.items() if value is not None}


class ListDialogs(Arguments):
    query: str = Field(default="", max_length=1_000, description="Words that must all occur in title or messages.")
    shelf: Literal["active", "clients", "archived", "trash"] = Field(
        default="active", description="Where the dialogs stand; clients: the active ones that other programs drive."
    )
    limit: int = Field(default=20, ge=1, le=100)
    cursor: str = Field(default="", max_length=100, description=NEXT)


class OfDialog(Arguments):
    dialog_id: UUID = Field(description="As list_dialogs gives it.")


class ReadDialog(OfDialog):
    limit: int = Field(default=10, ge=1, le=50, description="Messages on a page.")
    cursor: int = Field(default=0, ge=0, le=MOST, description=NEXT + " Each next page is older.")


class ReadMessage(OfDialog):
    message_id: int = Field(ge=1, le=MOST)
    cursor: int = Field(default=0, ge=0, le=MOST, description=NEXT)


class SearchArchive(OfDialog):
    query: str = Field(min_length=1, max_length=1_000, description="Words, or beginnings of words; not a question.")
    any_word: bool = Field(default=False, description="One word is enough; else all must be in one message.")
    also_current: bool = Field(
        default=False, description="Search the whole dialog, not only what the model no longer sees as it was said."
    )
    limit: int = Field(default=10, ge=1, le=50)
    cursor: int = Field(default=0, ge=0, le=10_000, description=NEXT)


class Recall(Arguments):
    query: str = Field(min_length=1, max_length=1_000, description="Words that you expect to stand there.")
    dialog_id: str = Field(
        default="", max_length=40, description="As list_dialogs gives it. Left out: the one that the headers name."
    )
    chat: str = Field(
        default="", max_length=200, description="Instead of dialog_id: the client's own name of the conversation."
    )
    limit: int = Field(default=QUOTED, ge=1, le=MOST_QUOTED, description="Passages, of 500 characters at most.")


class ListReadings(OfDialog):
    limit: int = Field(default=20, ge=1, le=200)
    cursor: int = Field(default=0, ge=0, le=MOST, description=NEXT + " Each next page is older.")


class ListCompactions(OfDialog):
    limit: int = Field(default=20, ge=1, le=100)
    cursor: int = Field(default=0, ge=0, le=MOST, description=NEXT + " Each next page is older.")


class ReadCompaction(OfDialog):
    compaction_id: int = Field(ge=1, le=MOST, description="As list_compactions gives it.")
    limit: int = Field(default=20, ge=1, le=100, description="Rows of each of the four lists on a page.")
    cursor: int = Field(default=0, ge=0, le=100_000, description=NEXT)
