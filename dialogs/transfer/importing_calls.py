"""What an agent did and what it was asked to do, written from a checked dialog file: calls, questions, prompts."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict

from dialogs.models import Message, Question, RemediationPrompt, SearchText, ToolCall
from dialogs.search import index_words
from dialogs.transfer.adding import BATCH, add
from dialogs.transfer.shape import CallEntry, PromptEntry, QuestionEntry

# By the message that asked, and the place of the call in it.
Questions = dict[tuple[int, int], Question]


def add_calls(entries: tuple[CallEntry, ...], messages: dict[int, Message]) -> Questions:
    """Add the calls and the questions that they ask."""
    rows = add(ToolCall, [_call(entry, messages) for entry in entries], entries)
    asked = [(row, entry, entry.question) for row, entry in zip(rows, entries, strict=True) if entry.question]
    questions = add(
        Question,
        [_question(row, question) for row, _entry, question in asked],
        [question for _row, _entry, question in asked],
        "asked_at",
    )
    places = [(entry.message, entry.position) for _row, entry, _question in asked]
    return dict(zip(places, questions, strict=True))


def _call(entry: CallEntry, messages: dict[int, Message]) -> ToolCall:
    result = messages[entry.result_message] if entry.result_message is not None else None
    fields = asdict(entry) | {"message": messages[entry.message], "result_message": result}
    fields.pop("question")
    return ToolCall(**fields)


def _question(call: ToolCall, entry: QuestionEntry) -> Question:
    return Question(dialog=call.message.dialog, tool_call=call, **asdict(entry))


def add_prompts(entries: tuple[PromptEntry, ...], messages: dict[int, Message]) -> None:
    rows = [_prompt(entry, messages[entry.message]) for entry in entries]
    add(RemediationPrompt, rows, entries, "created_at")


def _prompt(entry: PromptEntry, message: Message) -> RemediationPrompt:
    return RemediationPrompt(dialog=message.dialog, course=message.course, **asdict(entry) | {"message": message})


def add_search_texts(entries: tuple[CallEntry, ...], messages: dict[int, Message]) -> None:
    """What a search looks through: each message with the calls that it makes."""
    asked: defaultdict[int, list[str]] = defaultdict(list)
    for entry in entries:
        asked[entry.message].extend((entry.name, entry.arguments))
    rows = (
        SearchText(message=message, words=index_words(message.content, *asked[seq]))
        for seq, message in messages.items()
    )
    SearchText.objects.bulk_create(rows, batch_size=BATCH)
