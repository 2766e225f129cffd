"""The tools: what each is called with, what it answers, and how a call is made. Every one of them only reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.contrib.auth.models import User
from django.utils import translation
from mcp.types import CallToolResult, TextContent, Tool, ToolAnnotations
from pydantic import BaseModel, ValidationError

from dialogs.mcp_server import arguments, reading, results, words
from dialogs.mcp_server.reading import NothingThere, UnknownPlace

Asked = TypeVar("Asked", bound=arguments.Arguments)
Answer = TypeVar("Answer", bound=BaseModel)
READ_ONLY = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)

WRONG_CURSOR = "cursor: it leads nowhere. Begin again without it."


@dataclass(frozen=True, kw_only=True)
class ReadTool(Generic[Asked, Answer]):
    name: str
    title: str
    description: str
    asked: type[Asked]
    answer: type[Answer]
    read: Callable[[User, Asked], Answer]
    in_words: Callable[[Answer], str]

    def listed(self) -> Tool:
        return Tool(
            name=self.name,
            title=self.title,
            description=self.description,
            input_schema=self.asked.model_json_schema(),
            output_schema=self.answer.model_json_schema(mode="serialization"),
            annotations=READ_ONLY,
        )

    def call(self, user: User, given: Mapping[str, Any]) -> CallToolResult:
        """The tool's result. Wrong arguments are told in it, where the model reads them and can ask better."""
        try:
            asked = self.asked.model_validate(dict(given))
            # A client's model reads it, whoever uses the machine.
            with translation.override("en"):
                answer = self.read(user, asked)
        except ValidationError as error:
            return failed(_what_is_wrong(error))
        except UnknownPlace:
            return failed(WRONG_CURSOR)
        except NothingThere as error:
            return failed(str(error))
        text = TextContent(type="text", text=self.in_words(answer))
        return CallToolResult(content=[text], structured_content=answer.model_dump(mode="json"))


def failed(words: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=words)], is_error=True)


def _what_is_wrong(error: ValidationError) -> str:
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    return "\n".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in faults)


TOOLS: Mapping[str, ReadTool[Any, Any]] = {
    tool.name: tool
    for tool in (
        ReadTool(
            name="list_dialogs",
            title="List dialogs",
            description=(
                "The user's dialogs with Dominds agents, the latest activity first: id, title, agent, context level, "
                "whether an answer is being made. Begin here: the other tools need an id."
            ),
            asked=arguments.ListDialogs,
            answer=results.Dialogs,
            read=reading.list_dialogs,
            in_words=words.dialogs,
        ),
        ReadTool(
            name="read_dialog",
            title="Read a dialog",
            description=(
                "The newest messages of a dialog, with tool calls. Older ones by cursor. Long messages are given by "
                "their beginning. Everything that was said is here, also what the model no longer sees."
            ),
            asked=arguments.ReadDialog,
            answer=results.Transcript,
            read=reading.read_dialog,
            in_words=words.transcript,
        ),
        ReadTool(
            name="read_message",
            title="Read a message",
            description="The whole text of one message, in pages of 8,000 characters.",
            asked=arguments.ReadMessage,
            answer=results.MessageText,
            read=reading.read_message,
            in_words=words.message,
        ),
        ReadTool(
            name="search_archive",
            title="Search the archive",
            description=(
                "Find messages of a dialog by their words, in what was compacted away or left behind by a new course; "
                "with also_current in all of it."
            ),
            asked=arguments.SearchArchive,
            answer=results.SearchHits,
            read=reading.search_archive,
            in_words=words.hits,
        ),
        ReadTool(
            name="recall",
            title="Recall what left the context",
            description=(
                "Passages of a conversation that its model no longer sees, because they were compacted away or left "
                "behind by a new course, found by words: rules, values and names are there as they were said."
            ),
            asked=arguments.Recall,
            answer=results.Recalled,
            read=reading.recall,
            in_words=words.recalled,
        ),
        ReadTool(
            name="list_readings",
            title="List context readings",
            description=(
                "How full the context was, answer by answer: prompt tokens as the provider MEASURED them, window, "
                "level. Null is unknown; nothing here is estimated."
            ),
            asked=arguments.ListReadings,
            answer=results.Readings,
            read=reading.list_readings,
            in_words=words.readings,
        ),
        ReadTool(
            name="list_compactions",
            title="List compactions",
            description=(
                "When and why a dialog's context was made smaller, and what came of it. Tokens here are ESTIMATED; "
                "do not compare them with readings."
            ),
            asked=arguments.ListCompactions,
            answer=results.Compactions,
            read=reading.list_compactions,
            in_words=words.compactions,
        ),
        ReadTool(
            name="read_compaction",
            title="Read a compaction's receipt",
            description=(
                "What one compaction did: its steps, how much of each removed message was read, which facts only the "
                "archive still has, the ledger of what the user stated, the texts written instead. ESTIMATED tokens."
            ),
            asked=arguments.ReadCompaction,
            answer=results.Receipt,
            read=reading.read_compaction,
            in_words=words.receipt,
        ),
    )
}
