"""The overflow classifier: every wording that a server was seen to use, and what must not be taken for one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dialogs.providers.errors import Overflow, classify

LM_STUDIO_KEEP = (
    "Trying to keep the first 6269 tokens when context the overflows. However, the model is loaded with context "
    "length of only 4096 tokens, which is not enough. Try to load the model with a larger context length, or "
    "provide a shorter input"
)
LM_STUDIO_N_KEEP = (
    "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 23678>= "
    "n_ctx: 9472). Try to load the model with a larger context length, or provide a shorter input."
)
LM_STUDIO_GENERATING = (
    "Reached context length of 32000 tokens with model (arch: gpt-oss) that does not currently support "
    "mid-generation context overflow."
)
LLAMACPP = {
    "error": {
        "code": 400,
        "message": "request (13392 tokens) exceeds the available context size (8192 tokens), try increasing it",
        "type": "exceed_context_size_error",
        "n_prompt_tokens": 13392,
        "n_ctx": 8192,
    }
}
OLLAMA = "the prompt is longer than the context length currently available to the model; shorten it"


def openai(message: str, **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", "param": "messages", **more}}


@pytest.mark.parametrize(
    ("body", "window", "prompt"),
    [
        # LM Studio: the error may be a bare string; what it keeps is not the prompt.
        ({"error": LM_STUDIO_KEEP}, 4096, None),
        ({"error": {"message": LM_STUDIO_N_KEEP}}, 9472, None),
        (LM_STUDIO_N_KEEP, 9472, None),
        ("Cannot truncate prompt with n_keep (15028) >= n_ctx (7424)", 7424, None),
        ({"error": LM_STUDIO_GENERATING}, 32_000, None),
        # Ollama, with truncate off.
        ({"error": OLLAMA}, None, None),
        # llama.cpp: exact numbers in fields, with and without the wrapper.
        (LLAMACPP, 8192, 13_392),
        (LLAMACPP["error"], 8192, 13_392),
        ({"error": {"message": LLAMACPP["error"]["message"]}}, 8192, 13_392),
        # vLLM, new, middle and old; the last is flat.
        (
            openai(
                "This model's maximum context length is 2048 tokens. However, your request has 2100 input tokens. "
                "Please reduce the length of the input messages. (parameter=input_tokens, value=2100)"
            ),
            2048,
            2100,
        ),
        (
            openai(
                "You passed 2049 input tokens and requested 1 output tokens. However, the model's context length is "
                "only 2048 tokens, resulting in a maximum input length of 2047 tokens."
            ),
            2048,
            2049,
        ),
        (
            {
                "object": "error",
                "message": "This model's maximum context length is 16384 tokens. However, you requested 122946 tokens "
                "(112946 in the messages, 10000 in the completion). Please reduce the length of the messages.",
                "type": "BadRequestError",
                "param": None,
                "code": 400,
            },
            16_384,
            112_946,
        ),
        # OpenAI; DeepSeek and OpenRouter copy it.
        (
            openai(
                "This model's maximum context length is 16385 tokens. However, your messages resulted in 26620 tokens.",
                code="context_length_exceeded",
            ),
            16_385,
            26_620,
        ),
        (openai("Please reduce the length of the messages.", code="context_length_exceeded"), None, None),
        (
            openai(
                "This endpoint's maximum context length is 128000 tokens. However, you requested about 150000 tokens "
                "(140000 of text input, 10000 in the output)."
            ),
            128_000,
            140_000,
        ),
        # A proxy that passes the upstream's JSON on as text.
        (
            {"error": {"code": 400, "message": "Provider returned error", "metadata": {"raw": json.dumps(LLAMACPP)}}},
            8192,
            13_392,
        ),
        # Anthropic: the prompt alone, with the answer's ceiling, and by bytes.
        (
            {"type": "error", "error": {"type": "x", "message": "prompt is too long: 210000 tokens > 200000 maximum"}},
            200_000,
            210_000,
        ),
        (
            {"error": {"message": "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000"}},
            200_000,
            188_240,
        ),
        ({"error": {"type": "request_too_large", "message": "Request exceeds the maximum size"}}, None, None),
        # Gemini.
        (
            [
                {
                    "error": {
                        "code": 400,
                        "message": "The input token count (1200000) exceeds the maximum number of tokens allowed "
                        "(1048576).",
                    }
                }
            ],
            1_048_576,
            1_200_000,
        ),
        # Mistral, Moonshot, xAI, Qwen, Zhipu.
        (
            {"message": "Prompt contains 235396 tokens and 0 draft tokens, too large for model with 131072 maximum "
             "context length"},
            131_072,
            235_396,
        ),
        (openai("Invalid request: Your request exceeded model token limit: 8192"), 8192, None),
        (
            {"error": "This model's maximum prompt length is 131072 but the request contains 537812 tokens."},
            131_072,
            537_812,
        ),
        (openai("Range of input length should be [1, 30720]"), 30_720, None),
        (openai("Prompt exceeds max length", code="1261"), None, None),
        # Numbers as people write them, bytes, text that holds JSON, validators' lists.
        ({"error": "prompt is too long: 210,000 tokens > 200,000 maximum"}, 200_000, 210_000),
        (b'{"error": "context window of 4096 tokens exceeded"}', 4096, None),
        ({"detail": [{"msg": "input exceeds the context window"}]}, None, None),
        ('{"error": broken, but the maximum context length is 900', 900, None),
    ],
)  # fmt: skip
def test_every_known_wording_is_an_overflow(body: Any, window: int | None, prompt: int | None) -> None:
    for status in (400, 413, 422, 200, None):
        of_bytes = "request_too_large" in str(body)
        found = Overflow(context_window=window, prompt_tokens=prompt, is_of_bytes=of_bytes)
        assert classify(status, body) == found


@pytest.mark.parametrize("status", [401, 404, 429, 500, 503])
def test_another_status_is_never_an_overflow(status: int) -> None:
    assert classify(status, LLAMACPP) is None


@pytest.mark.parametrize(
    "body",
    [
        # A rate limit inside a stream: no status, but it says 429.
        {"error": {"code": 429, "message": "Too many tokens: the maximum context length is 8192"}},
        {"error": {"type": "rate_limit_error", "message": "prompt is too long"}},
        {"error": {"message": "Too many tokens, slow down"}},
        {"error": {"message": "The model `x` does not exist"}},
        # What a person wrote, echoed by a validator, is not what the server says.
        {"detail": [{"msg": "Field required", "input": [{"role": "user", "content": "prompt is too long"}]}]},
        "",
        None,
        [],
        42,
        {"error": None},
    ],
)
def test_other_errors_are_no_overflow(body: Any) -> None:
    assert classify(None, body) is None


@pytest.mark.parametrize(
    "body",
    [
        # vLLM once printed the room left as the maximum.
        openai("This model's maximum context length is 3 tokens. However, your request has 2100 input tokens."),
        {"error": {"type": "exceed_context_size_error", "n_ctx": 0, "n_prompt_tokens": 2100}},
        {"error": {"type": "exceed_context_size_error", "n_ctx": -1, "n_prompt_tokens": 2100}},
        {"error": {"type": "exceed_context_size_error", "n_ctx": "8192", "n_prompt_tokens": 2100}},
        openai(f"maximum context length is {'9' * 30} tokens; the request has 2100 input tokens"),
    ],
)
def test_a_window_that_cannot_be_true_is_not_learned(body: Any) -> None:
    assert classify(400, body) == Overflow(context_window=None, prompt_tokens=2100)


def test_a_hostile_body_is_read_without_harm() -> None:
    deep: Any = "prompt is too long"
    for _ in range(100):
        deep = {"error": deep}

    assert classify(400, deep) is None
    assert classify(400, "{" * 100_000) is None
    assert classify(400, {"error": "x" * 10_000_000}) is None
