"""`/v1/openapi.json`, the API's description, made from the types that check requests. It needs no key."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict
from pydantic.json_schema import models_json_schema

from dialogs.api.schemas import ChatBody, CountBody
from dialogs.models import ApiKey
from dominds import __version__

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
    """Dominds' own facts about an answer; null for a chore."""

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


Object = dict[str, Any]
BODIES = (ChatBody, Completion, Chunk, Model, ModelList, Refusal, CountBody, Counted)
# What any request can meet; then what only one for an answer can.
REFUSALS = {
    "400": "The request is not valid; `param` names the field.",
    "401": "No key, or one that is not valid here.",
    "404": "No such model for this key.",
    "405": "Another method.",
    "429": "Too many requests of this key, or of the provider's; `Retry-After` says when to come back.",
    "500": "Dominds failed; its log has the details.",
}
CHAT_REFUSALS = {
    "403": "The key may only read.",
    "404": "No such model, or no such conversation, for this key.",
    "413": "The body is larger than this Dominds reads.",
    "502": "The provider failed, or refused the key that Dominds has for it.",
    "503": "The provider cannot be reached.",
    "507": "The disk or the database of this Dominds is full.",
}
ABOUT = """\
Any program that talks to OpenAI's chat completions can talk to Dominds. The history that it sends may be longer than
the model's window: it is compacted before it is sent, and in the middle of an answer."""
STREAM = """\
Where `stream` is true: events whose `data:` is a Chunk, then `data: [DONE]`. A failure after the first byte is an event
whose `data:` is a Refusal; nothing comes after it."""


@cache
def document() -> Object:
    _by_model, definitions = models_json_schema(
        [(body, "validation") for body in BODIES], ref_template="#/components/schemas/{model}"
    )
    return {
        "openapi": "3.2.0",
        "info": {"title": "Dominds", "version": __version__, "description": ABOUT},
        "servers": [{"url": "/v1"}],
        "security": [{name: []} for name in KEYS],
        "paths": {
            "/models": {"get": _reading("list_models", "The models that the key may use.", "ModelList")},
            "/models/{model}": {
                "get": _reading("retrieve_model", "One of them. An id may have slashes.", "Model"),
                "parameters": [{"name": "model", "in": "path", "required": True, "schema": {"type": "string"}}],
            },
            "/chat/completions": {"post": _chat()},
            "/tokens/count": {"post": _counting()},
        },
        "components": {"schemas": definitions["$defs"], "securitySchemes": KEYS},
    }


KEYS = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "x-api-key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
    "api-key": {"type": "apiKey", "in": "header", "name": "api-key"},
}
HEADERS = (
    ("X-Dominds-Notices", "How to tell that it is compacting; empty: as the key says.", ["", *ApiKey.Notices.values]),
    ("X-Dominds-Dialog", "Go on with this conversation, by the id under `dominds`.", None),
    ("X-Dominds-Chat", "The client's own name of the conversation.", None),
    ("X-Dominds-Task", "Not empty: a task of the client's own, such as a title. It leaves nothing behind.", None),
)


def _chat() -> Object:
    return {
        "operationId": "create_chat_completion",
        "summary": "The next answer to a conversation.",
        "parameters": [_header(*header) for header in HEADERS],
        "requestBody": {"required": True, **_json("ChatBody")},
        "responses": {
            "200": {
                "description": STREAM,
                "content": {**_json("Completion")["content"], "text/event-stream": {"itemSchema": _event()}},
            },
            **_refusals(REFUSALS | CHAT_REFUSALS),
        },
    }


def _event() -> Object:
    """One event of a stream, of which 3.2 is the first OpenAPI that can tell."""
    told = {"anyOf": [_reference("Chunk"), _reference("Refusal")]}
    data = {"anyOf": [{"const": "[DONE]"}, {"contentMediaType": "application/json", "contentSchema": told}]}
    return {"type": "object", "required": ["data"], "properties": {"data": {"type": "string", **data}}}


def _header(name: str, words: str, choices: list[str] | None) -> Object:
    schema = {"type": "string", **({"enum": choices} if choices else {})}
    return {"name": name, "in": "header", "description": words, "schema": schema}


def _counting() -> Object:
    words = "How many tokens a text, or messages with their tools, likely are for a model. Estimated; nobody is asked."
    refusals = REFUSALS | {"413": CHAT_REFUSALS["413"]}
    return {
        "operationId": "count_tokens",
        "summary": words,
        "requestBody": {"required": True, **_json("CountBody")},
        "responses": {"200": {"description": words, **_json("Counted")}, **_refusals(refusals)},
    }


def _reading(operation: str, words: str, schema: str) -> Object:
    return {
        "operationId": operation,
        "summary": words,
        "responses": {"200": {"description": words, **_json(schema)}, **_refusals(REFUSALS)},
    }


def _refusals(words: dict[str, str]) -> Object:
    return {status: {"description": said, **_json("Refusal")} for status, said in sorted(words.items())}


def _json(schema: str) -> Object:
    return {"content": {"application/json": {"schema": _reference(schema)}}}


def _reference(schema: str) -> Object:
    return {"$ref": f"#/components/schemas/{schema}"}
