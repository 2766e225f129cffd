"""The provider contract: the messages of a chat and the request with all that goes along; one async generator of typed
events; and a small family of errors.

A provider speaks to one LLM service. It never touches the database, and it never sends more than it
was given. A new provider is a new file beside this one and one line in `registry.py`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from health.monitor.levels import Usage, UsageUnavailable


@dataclass(frozen=True)
class TextDelta:
    text: str


@dataclass(frozen=True)
class ReasoningDelta:
    text: str


@dataclass(frozen=True)
class ArgumentsDelta:
    """A piece of a streamed tool call's name or arguments. It is counted as tokens, and not shown."""

    text: str


@dataclass(frozen=True)
class ToolCallReady:
    """Sent once for each tool call, when its arguments are complete."""

    call: ToolCall


@dataclass(frozen=True)
class UsageReported:
    """Sent exactly once, directly before Finished. `raw` is what the provider sent, for the record."""

    usage: Usage | UsageUnavailable
    raw: dict[str, Any] | None = None


@dataclass(frozen=True)
class Finished:
    """The last event of a stream that ended well.

    `reason`: stop, length, tool_calls, content_filter; `context_window` when the answer itself filled the window.
    """

    reason: str


StreamEvent = TextDelta | ReasoningDelta | ArgumentsDelta | ToolCallReady | UsageReported | Finished


@dataclass(frozen=True, kw_only=True)
class ModelFacts:
    """One model as a server describes it. None where the server does not say; 0 is never "no limit".

    `context_length` is in force now; `maximum` is what the model could have, and is no window. `source` says where
    the window was read, `note` what else a person should know: both translated.
    """

    model_id: str
    context_length: int | None = None
    output_length: int | None = None
    maximum: int | None = None
    loaded: bool | None = None
    source: str = ""
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class ProviderSettings:
    """Everything a provider needs to know of its service. `api_key` is kept out of repr and logs.

    `problem` says why these settings cannot be used, when they cannot; `make_provider` then refuses.
    """

    name: str
    kind: str
    base_url: str
    api_key: str = field(default="", repr=False)
    problem: str = ""
    connect_timeout: float = 10.0
    read_timeout: float = 300.0


class Provider(Protocol):
    """The contract. A class may implement `tokenizing.CountsTokens` too."""

    kind: ClassVar[str]

    def __init__(self, settings: ProviderSettings) -> None: ...

    def stream(self, request: ChatRequest) -> AsyncGenerator[StreamEvent, None]:
        """Yield deltas as they come, then UsageReported, then Finished; raise a ProviderError otherwise.

        Closing the generator (`aclose`) closes the connection, which tells the server to stop.
        """
        ...

    async def list_models(self) -> tuple[ModelFacts, ...]: ...

    async def read_limits(self, model_id: str) -> ModelFacts:
        """What the server says of one model now. Raises ModelNotFound when it does not know it."""
        ...

    async def aclose(self) -> None: ...


class ProviderError(Exception):
    """The provider could not answer. The base of everything a provider raises."""

    code: ClassVar[str] = "provider_error"
    retryable: ClassVar[bool] = False

    def __init__(self, message: str = "", *, retry_after: float | None = None, status: int | None = None) -> None:
        super().__init__(message or str(self.__doc__))
        self.retry_after = retry_after
        self.status = status


class NotConfigured(ProviderError):
    """The provider's settings cannot be used as they stand. An admin must correct them."""

    code = "not_configured"


class SwitchedOff(ProviderError):
    """The LLM, or its provider, is switched off here. Nothing was sent."""

    code = "switched_off"


class ProviderUnreachable(ProviderError):
    """The provider did not answer in time, or the connection broke."""

    code = "provider_unreachable"
    retryable = True


class ProviderFailed(ProviderError):
    """The provider answered with an error of its own (5xx)."""

    code = "provider_failed"
    retryable = True


class RateLimited(ProviderError):
    """The provider asks us to slow down."""

    code = "rate_limited"
    retryable = True


class AuthenticationRefused(ProviderError):
    """The provider refused the key. An admin must set a valid one."""

    code = "authentication_refused"


class ModelNotFound(ProviderError):
    """The provider does not know this model."""

    code = "model_not_found"


class LimitUnavailable(ProviderError):
    """Nobody knows how large the model's window is, and this server cuts what does not fit without a word."""

    code = "limit_unavailable"


class RequestRefused(ProviderError):
    """The provider refused the request as it stands."""

    code = "request_refused"


class ToolsRefused(ProviderError):
    """The server or the model cannot be offered tools. The same request without them may do."""

    code = "tools_refused"


class MessagesRefused(RequestRefused):
    """The server refuses messages in this order or form. The same words in a stricter shape may do."""

    code = "messages_refused"


class MediaRefused(ProviderError):
    """The model or its server reads no images, sound or files. Leave them out, or choose a model that reads them."""

    code = "media_refused"


class BadAnswer(ProviderError):
    """The provider answered something that is no chat stream, such as an HTML page."""

    code = "bad_answer"


class AnswerEndless(ProviderError):
    """The answer went on beyond what one answer may have, and was ended."""

    code = "answer_endless"


class ContextOverflow(ProviderError):
    """The prompt is longer than the model's context window."""

    code = "context_overflow"

    def __init__(
        self,
        message: str = "",
        *,
        context_window: int | None = None,
        prompt_tokens: int | None = None,
        is_of_bytes: bool = False,
        status: int | None = None,
    ) -> None:
        """`is_of_bytes`: it was the body that was too long, which says nothing about a window."""
        super().__init__(message, status=status)
        self.context_window = context_window
        self.prompt_tokens = prompt_tokens
        self.is_of_bytes = is_of_bytes


@dataclass(frozen=True, kw_only=True)
class ToolCall:
    """A complete call that the model asked for. `arguments` is the JSON text as the model wrote it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, kw_only=True)
class ChatMessage:
    """One message as it is sent. `role` is system, user, assistant or tool.

    `parts` are content parts in OpenAI's form (text, image_url), sent instead of `content` where there are any:
    `content` then is their text. A client's message may have them, and a `name`.
    """

    role: str
    content: str
    parts: tuple[Mapping[str, Any], ...] = ()
    name: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class ChatRequest:
    """What one generation sends. `tools` are JSON schemas in OpenAI's function form.

    `context_window` is what a server is asked to set aside, where one can be asked (Ollama); the others ignore it.
    `continues`: the last message is the agent's, and the answer is to go on with it as if it had never stopped.
    `options` are a client's own, under OpenAI's names: temperature, stop, tool_choice, response_format and the like. A
    provider passes on those that its service has, and leaves out the others.
    """

    model: str
    messages: tuple[ChatMessage, ...]
    tools: tuple[dict[str, Any], ...] = ()
    max_output_tokens: int | None = None
    context_window: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    continues: bool = False
