"""Which of a client's options goes to which service, under which name; and reading content parts and calls for services
with other formats. Pure; docs/providers.md says the same.

Options with another format there (`response_format`, `tool_choice`, `user`, `reasoning_effort`) are converted in
`anthropic.py` and `ollama.py`.

Options that are not in a service's table are not sent: unknown ones; those that would store the conversation elsewhere
(`store`, `metadata`); those that our answers cannot carry (`n`, `logprobs`, `audio`, `modalities`); and those that let
a server cut the prompt silently (`truncate_prompt_tokens`, `context_shift`, `n_keep`, `num_ctx`, `transforms`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dialogs.providers.base import RequestRefused, ToolCall
from dialogs.providers.usage import as_mapping, as_text

# The client's name of an option, and the service's.
Names = dict[str, str]


def same(*names: str) -> Names:
    return {name: name for name in names}


OF_TOOLS: Names = same("tool_choice", "parallel_tool_calls")
OF_OPENAI: Names = same(
    *("temperature", "top_p", "stop", "seed", "presence_penalty", "frequency_penalty", "logit_bias"),
    *("response_format", "reasoning_effort", "verbosity", "prediction", "service_tier"),
    *("user", "safety_identifier", "prompt_cache_key", "prompt_cache_retention"),
)
# Every other server that speaks chat completions also gets what llama.cpp, LM Studio, vLLM, SGLang, OpenRouter and
# the hosts of open models have added. Each passes over what it does not know, or refuses it in words.
OF_OTHERS: Names = OF_OPENAI | same(
    *("top_k", "top_a", "min_p", "typical_p", "tfs_z", "repeat_penalty", "repetition_penalty", "length_penalty"),
    *("repeat_last_n", "mirostat", "mirostat_tau", "mirostat_eta", "dynatemp_range", "dynatemp_exponent"),
    *("xtc_probability", "xtc_threshold", "dry_multiplier", "dry_base", "dry_allowed_length", "dry_penalty_last_n"),
    *("dry_sequence_breakers", "samplers", "ignore_eos", "min_tokens", "stop_token_ids", "bad_words"),
    *("grammar", "json_schema", "guided_json", "guided_regex", "guided_choice", "guided_grammar"),
    *("structured_outputs", "regex", "ebnf", "cache_prompt", "id_slot"),
    *("chat_template_kwargs", "reasoning_format", "reasoning", "include_reasoning", "thinking", "enable_thinking"),
    *("thinking_budget", "thinking_budget_tokens", "provider"),
)
OF_ANTHROPIC: Names = same("temperature", "top_p", "top_k") | {"stop": "stop_sequences"}
OF_OLLAMA: Names = same(
    *("temperature", "top_p", "top_k", "min_p", "typical_p", "seed", "stop", "presence_penalty", "frequency_penalty"),
    *("repeat_penalty", "repeat_last_n", "mirostat", "mirostat_tau", "mirostat_eta"),
)


def chosen(options: Mapping[str, Any], names: Names) -> dict[str, Any]:
    """The options under the service's names, in the order of its table. Null, like absence, means its default."""
    return {theirs: options[ours] for ours, theirs in names.items() if options.get(ours) is not None}


def as_texts(stop: object) -> list[str]:
    """`stop` as a list: OpenAI takes a single text too."""
    texts = [stop] if isinstance(stop, str) else stop
    return [text for text in texts if isinstance(text, str)] if isinstance(texts, list) else []


def schema_of(response_format: object) -> Mapping[str, Any] | None:
    """The JSON schema that an answer must follow, out of OpenAI's `response_format`."""
    wished = response_format.get("json_schema") if isinstance(response_format, Mapping) else None
    schema = wished.get("schema") if isinstance(wished, Mapping) else None
    return schema if isinstance(schema, Mapping) else None


PDF = "application/pdf"


@dataclass(frozen=True)
class Text:
    text: str


@dataclass(frozen=True)
class Data:
    """A picture, or a file, in the request itself: `base64` is its content."""

    media_type: str
    base64: str

    @property
    def is_image(self) -> bool:
        return self.media_type.startswith("image/")


@dataclass(frozen=True)
class ImageAt:
    """A picture that the service must fetch."""

    url: str


Part = Text | Data | ImageAt


def read_part(part: Mapping[str, Any]) -> Part:
    """Raises RequestRefused for a part that only some OpenAI-compatible servers take, such as sound."""
    kind = as_text(part.get("type"))
    if kind in {"text", "refusal"}:
        return Text(as_text(part.get(kind)))
    if kind == "image_url":
        image = part.get("image_url")
        return _image(as_text(image) or as_text(as_mapping(image).get("url")))
    if kind == "file" and (data := as_text(as_mapping(part.get("file")).get("file_data"))):
        return _data(data)
    raise refused(f"It takes no content part of type {kind!r}{' by its id' * (kind == 'file')}.")


def arguments_of(call: ToolCall) -> dict[str, Any]:
    """The arguments of a call for a service that takes an object only. What the model wrote wrongly is still shown to
    it."""
    parsed = _parsed(call.arguments)
    return parsed if isinstance(parsed, dict) else {"arguments": parsed}


def written_arguments(call: ToolCall) -> str:
    """The arguments as text: as the model wrote them, where they are an object. llama.cpp and vLLM read those of all
    calls for each request, and refuse a conversation with a single one that they cannot read."""
    as_it_is = call.arguments and isinstance(_parsed(call.arguments), dict)
    return call.arguments if as_it_is else json.dumps(arguments_of(call), ensure_ascii=False)


def _parsed(arguments: str) -> Any:
    """The parsed JSON; where the text is no JSON (NaN and infinity are none), the text itself."""
    try:
        return json.loads(arguments or "{}", parse_constant=_refuse)
    except (ValueError, RecursionError):
        return arguments


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def refused(why: str) -> RequestRefused:
    return RequestRefused(f"This request cannot be sent to the model's provider. {why}", status=400)


def _image(url: str) -> Part:
    return ImageAt(url) if url.startswith(("http://", "https://")) else _data(url)


def _data(url: str) -> Data:
    head, _, content = url.partition(",")
    media_type, *rest = head.removeprefix("data:").split(";")
    if not head.startswith("data:") or "base64" not in rest:
        raise refused("Write an image or a file as a data URL with base64, like data:image/png;base64,… .")
    # A media type that is often written and was never registered.
    return Data("image/jpeg" if media_type == "image/jpg" else media_type, content)
