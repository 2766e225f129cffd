"""What `/v1` answers, as types: the OpenAPI document is made of them, and tests hold real answers against them.

Nothing here is used to answer. No type lets in a field that it does not name: an upstream's own must never pass.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

FinishReason = Literal["stop", "length", "tool_calls", "content_filter"]


class Answer(BaseModel):
    model_config = ConfigDict(extra="forbid")


class CalledFunction(Answer):
    name: str
    arguments: str


class ToolCall(Answer):
    id: str
    type: Literal["function"]
    function: CalledFunction


class AssistantMessage(Answer):
    role: Literal["assistant"]
    content: str | None
    reasoning_content: str = ""
    tool_calls: list[ToolCall] = []


class Choice(Answer):
    index: Literal[0]
    message: AssistantMessage
    logprobs: None
    finish_reason: FinishReason


class PromptDetails(Answer):
    cached_tokens: int


class Usage(Answer):
    """As the provider reported it for the last generation."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptDetails | None = None


class Internals(Answer):
    """What only Dominds knows. An answer to a client's background task has none."""

    dialog: str
    level: str
    compactions: int
    generations: int


class Completion(Answer):
    """`usage` is null where the provider reports none: nothing is estimated."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[Choice]
    usage: Usage | None
    dominds: Internals | None = None


class ToolCallDelta(ToolCall):
    """A call comes whole, in one chunk."""

    index: int


class Delta(Answer):
    role: Literal["assistant"] = "assistant"
    content: str = ""
    reasoning_content: str = ""
    tool_calls: list[ToolCallDelta] = []


class ChunkChoice(Answer):
    index: Literal[0]
    delta: Delta
    finish_reason: FinishReason | None


class StatusData(Answer):
    description: str
    done: bool


class Status(Answer):
    """A notice, in the form that Open WebUI shows as a status. Its chunk says nothing else."""

    type: Literal["status"]
    data: StatusData


class Chunk(Answer):
    """The `data:` of one event. The one with usage has no choices; it comes last, where it was asked for."""

    id: str
    object: Literal["chat.completion.chunk"]
    created: int
    model: str
    choices: list[ChunkChoice]
    event: Status | None = None
    usage: Usage | None = None
    dominds: Internals | None = None


class Counted(Answer):
    """How many tokens it likely is. `grade`: `exact` with the model's own vocabulary, `approximate`, `rough`."""

    object: Literal["tokens.count"]
    model: str
    kind: Literal["estimated"]
    tokens: int
    counter: str
    grade: Literal["exact", "approximate", "rough"]


class MeantBy(Answer):
    """What the number of the list is: `kept_to`, to which Dominds keeps a request; else the model's whole `window`."""

    context_length_is: Literal["kept_to", "window", "unknown"]
    window: int | None


class Model(Answer):
    """The limit stands under the three names that clients look for; null where it is not known."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str
    context_length: int | None
    max_model_len: int | None
    context_window: int | None
    dominds: MeantBy


class ModelList(Answer):
    object: Literal["list"]
    data: list[Model]


class ErrorFacts(Answer):
    message: str
    type: Literal["invalid_request_error", "rate_limit_error", "api_error"]
    param: str | None
    code: str | None


class Refusal(Answer):
    """Every answer that is an error, and the `data:` of an event that ends a stream with one."""

    error: ErrorFacts
