"""The schema of a chat completion's body. Errors name the wrong field.

Other fields are allowed: a provider gets those that it knows (`providers/options.py`).
"""

from __future__ import annotations

import re
from math import isfinite
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import from_json

from dialogs.api.errors import ApiError, invalid_request

MAX_CALLS = 500
# The most messages of a request: storing an unknown history blocks every other writer.
MAX_MESSAGES = 5_000


class Body(BaseModel):
    # Strict, as OpenAI is: "5" is no number. The published document is made of these and says so.
    model_config = ConfigDict(extra="allow", strict=True, allow_inf_nan=False, hide_input_in_errors=True)


def _whole(number: Any) -> Any:
    """JSON knows one kind of number: 12.0 is an integer there."""
    return int(number) if isinstance(number, float) and number.is_integer() else number


WHOLE = BeforeValidator(_whole)
# Bounds stand before it, or the published document would not have them.
TokenCount = Annotated[int, Field(ge=1, le=2_000_000_000), WHOLE]


class FunctionCall(Body):
    name: str = Field(min_length=1, max_length=200)
    arguments: str = ""


class Call(Body):
    id: str = Field(default="", max_length=200)
    type: Literal["function"] = "function"
    function: FunctionCall


class ImageUrl(Body):
    url: str = Field(min_length=1)


def _needs_what_its_type_says(schema: dict[str, Any]) -> None:
    """In the published document, what the validator below checks."""
    kinds = schema["properties"]
    needs = {kind: _without_null(kinds[kind]) for kind in kinds["type"]["enum"] if kind != "refusal"}
    schema["oneOf"] = [{"properties": {"type": {"const": "refusal"}}}] + [
        {"properties": {"type": {"const": kind}, kind: need}, "required": [kind]} for kind, need in needs.items()
    ]


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    first: dict[str, Any] = schema["anyOf"][0]
    return first


class Part(Body):
    model_config = ConfigDict(json_schema_extra=_needs_what_its_type_says)

    type: Literal["text", "refusal", "image_url", "input_audio", "file"]
    text: str | None = None
    image_url: ImageUrl | None = None
    input_audio: dict[str, Any] | None = None
    file: dict[str, Any] | None = None

    @model_validator(mode="after")
    def has_what_its_type_says(self) -> Part:
        if self.type != "refusal" and getattr(self, self.type) is None:
            raise ValueError(f"a part of type {self.type!r} needs {self.type!r}")
        return self


ANSWERS_A_CALL: dict[str, Any] = {
    "if": {"properties": {"role": {"const": "tool"}}},
    "then": {"required": ["tool_call_id"], "properties": {"tool_call_id": {"type": "string", "minLength": 1}}},
}


class ChatMessage(Body):
    model_config = ConfigDict(json_schema_extra=ANSWERS_A_CALL)

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[Part] | None = None
    name: str | None = Field(default=None, max_length=200)
    tool_calls: Annotated[list[Call], Field(max_length=MAX_CALLS)] | None = None
    tool_call_id: str | None = Field(default=None, max_length=200)

    @model_validator(mode="after")
    def answers_a_call(self) -> ChatMessage:
        if self.role == "tool" and not self.tool_call_id:
            raise ValueError("a message of role 'tool' needs 'tool_call_id'")
        return self

    @property
    def says_something(self) -> bool:
        return bool(self.content or self.tool_calls or self.tool_call_id or (self.model_extra or {}).get("refusal"))


class Function(Body):
    name: str = Field(min_length=1, max_length=200)
    description: str | None = None
    parameters: dict[str, Any] | None = None


class ToolSpec(Body):
    type: Literal["function"]
    function: Function


class StreamOptions(Body):
    include_usage: bool | None = None


class ChatBody(Body):
    """`POST /v1/chat/completions`."""

    model: str = Field(min_length=1, max_length=300)
    messages: list[ChatMessage] = Field(min_length=1, max_length=MAX_MESSAGES)
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    tools: list[ToolSpec] | None = None
    max_tokens: TokenCount | None = None
    max_completion_tokens: TokenCount | None = None
    n: Annotated[int, Field(ge=1, le=1), WHOLE] | None = None
    temperature: float | None = None
    top_p: float | None = None
    stop: str | list[str] | None = None
    seed: Annotated[int, WHOLE] | None = None
    tool_choice: str | dict[str, Any] | None = None
    response_format: dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    # Deprecated fields: only null is accepted.
    functions: list[Any] | None = Field(default=None, max_length=0)
    function_call: None = None

    @model_validator(mode="before")
    @classmethod
    def has_no_old_fields(cls, found: Any) -> Any:
        if not isinstance(found, dict):
            raise ValueError("the body must be a JSON object")
        if found.get("functions") or found.get("function_call"):
            raise ValueError("'functions' and 'function_call' are not supported any more: use 'tools'")
        return found

    @model_validator(mode="after")
    def says_something(self) -> ChatBody:
        if not any(message.says_something for message in self.messages):
            raise ValueError("every message is empty: there is nothing to answer")
        return self

    @property
    def max_output_tokens(self) -> int | None:
        return self.max_completion_tokens or self.max_tokens

    def options(self) -> dict[str, Any]:
        """The options for the provider: all given fields that are not read here."""
        return self.model_dump(exclude=set(READ_HERE), exclude_none=True)


def _is_one_of(*names: str) -> dict[str, Any]:
    """In the published document: exactly one of these says something."""
    return {"oneOf": [{"required": [name], "properties": {name: {"not": {"type": "null"}}}} for name in names]}


class CountBody(Body):
    """`POST /v1/tokens/count`: a text, or messages and the tools that go along with them."""

    model_config = ConfigDict(json_schema_extra=_is_one_of("text", "messages"))

    model: str = Field(min_length=1, max_length=300)
    text: str | None = None
    messages: list[ChatMessage] | None = Field(default=None, max_length=MAX_MESSAGES)
    tools: list[ToolSpec] | None = None

    @model_validator(mode="after")
    def has_one_of_both(self) -> CountBody:
        if (self.text is None) == (self.messages is None):
            raise ValueError("give either 'text' or 'messages'")
        return self


READ_HERE = (
    *("model", "messages", "stream", "stream_options", "tools", "max_tokens", "max_completion_tokens", "n"),
    *("functions", "function_call"),
)


def read_count(raw: bytes) -> CountBody:
    """What is to be counted. Raises ApiError, 400, that names the first field that is wrong."""
    return _checked(CountBody, in_range(read_json(raw)))


def read_json(raw: bytes) -> Any:
    """Raises ApiError, 400."""
    try:
        return parsed(raw)
    except ValueError as error:
        raise invalid_request(f"The body is no valid JSON: {error}.") from None


def in_range(found: Any) -> Any:
    """What was read. Raises ApiError, 400, where a number of it is none that can be sent on."""
    if not _is_finite(found):
        raise invalid_request("The body is no valid JSON: a number is out of range.")
    return found


def checked(body: Any) -> ChatBody:
    """Messages in it that are `ChatMessage`s already are not checked again. Raises ApiError as `read_count` does."""
    return _checked(ChatBody, body)


AnyBody = TypeVar("AnyBody", bound=Body)


def _checked(kind: type[AnyBody], body: Any) -> AnyBody:
    try:
        return kind.model_validate(body)
    except ValidationError as error:
        raise _refused(error) from None


def _refused(error: ValidationError) -> ApiError:
    found = error.errors(include_url=False, include_context=False, include_input=False)
    # Of a union each member has its say; the one that fits best got farthest.
    first = max(found, key=lambda one: len(one["loc"]))
    place, said = _place(first["loc"]), first["msg"].removeprefix("Value error, ")
    words = f"{place}: {said}" if place else said
    return invalid_request(words, param=place or None)


def _place(loc: tuple[int | str, ...]) -> str:
    """("messages", 2, "content") -> "messages[2].content"; the names of a union's members are left out."""
    place = ""
    for step in loc:
        if isinstance(step, int):
            place += f"[{step}]"
        elif not place or (step.isidentifier() and step not in {"str", "list", "int", "float", "bool"}):
            place += f".{step}" if place else step
    return place


# Parsing clients' JSON: what could not be stored or sent on is replaced or refused. PURE.
# Every escape, so that what follows an escaped backslash is none; a pair of surrogates counts as one.
ESCAPES = re.compile(rb"\\(?:u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w|u\w{4}|.)", re.DOTALL)
HALF = re.compile(rb"\\u[dD][89a-fA-F]\w\w")
NUL = rb"\u0000"


def parsed(raw: bytes) -> Any:
    """Parse JSON. Raises ValueError."""
    return _read(ESCAPES.sub(_storable, raw) if NUL in raw else raw)


def _read(raw: bytes) -> Any:
    try:
        return from_json(raw, allow_inf_nan=False)
    except ValueError:
        return from_json(ESCAPES.sub(_storable, raw), allow_inf_nan=False)


def _storable(escape: re.Match[bytes]) -> bytes:
    """The signs that `dialogs.common.text.storable` puts in their place."""
    if escape[0] == NUL:
        return rb"\u2400"
    return rb"\ufffd" if HALF.fullmatch(escape[0]) else escape[0]


def _is_finite(value: Any) -> bool:
    if isinstance(value, float):
        return isfinite(value)
    if isinstance(value, dict):
        return all(map(_is_finite, value.values()))
    return not isinstance(value, list) or all(map(_is_finite, value))
