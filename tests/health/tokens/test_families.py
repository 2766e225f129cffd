"""Names of models as they stand in the world, and the vocabulary each is counted with."""

from __future__ import annotations

import pytest

from health.compaction.terms.ports import Grade
from health.tokens.families import Vocabulary, family_name, family_of


@pytest.mark.parametrize(
    ("model", "name", "vocabulary"),
    [
        ("Meta-LLaMA-3.1-8B", "llama3", Vocabulary.LLAMA3),
        ("llama3:8b", "llama3", Vocabulary.LLAMA3),
        ("meta-llama/Llama-3.3-70B-Instruct", "llama3", Vocabulary.LLAMA3),
        ("deepseek-ai/DeepSeek-R1-Distill-Llama-8B", "llama3", Vocabulary.LLAMA3),
        ("nvidia/Llama-3_3-Nemotron-Super-49B", "llama3", Vocabulary.LLAMA3),
        ("Llama-2-7b-chat-hf", "llama2", Vocabulary.LLAMA2),
        ("LLAMA2:13b", "llama2", Vocabulary.LLAMA2),
        ("TinyLlama-1.1B-Chat-v1.0", "llama2", Vocabulary.LLAMA2),
        ("Mistral-7B-Instruct-v0.1", "mistral", Vocabulary.MISTRAL_V1),
        ("mistral-7b-instruct-v0.2.Q4_K_M", "mistral", Vocabulary.MISTRAL_V1),
        ("Mixtral-8x7B-Instruct-v0.1", "mistral", Vocabulary.MISTRAL_V1),
        ("Mistral-7B-Instruct-v0.3", "mistral", Vocabulary.MISTRAL_V3),
        ("mixtral-8x22b", "mistral", Vocabulary.MISTRAL_V3),
        ("mistral-large-2407", "mistral", Vocabulary.MISTRAL_V3),
        ("Mistral-Large-Instruct-2411", "mistral", Vocabulary.MISTRAL_V3),
        ("Mistral-Small-Instruct-2409", "mistral", Vocabulary.MISTRAL_V3),
        ("Mistral-Nemo-Instruct-2407", "mistral", Vocabulary.TEKKEN),
        ("open-mistral-nemo-2407", "mistral", Vocabulary.TEKKEN),
        ("Mistral-Small-24B-Instruct-2501", "mistral", Vocabulary.TEKKEN),
        ("mistral-large-latest", "mistral", Vocabulary.TEKKEN),
        ("ministral-8b-2410", "mistral", Vocabulary.TEKKEN),
        ("pixtral-12b-2409", "mistral", Vocabulary.TEKKEN),
        ("devstral-small-2507", "mistral", Vocabulary.TEKKEN),
        ("openai/gpt-oss-20b", "gpt", Vocabulary.O200K),
        ("HuggingFaceTB/SmolLM2-1.7B-Instruct", "smollm2", Vocabulary.SMOLLM2),
        ("smollm2-135m", "smollm2", Vocabulary.SMOLLM2),
        ("gpt-4o-mini", "gpt", Vocabulary.O200K),
        ("chatgpt-4o-latest", "gpt", Vocabulary.O200K),
        ("gpt-4.1-nano", "gpt", Vocabulary.O200K),
        ("GPT-5.1", "gpt", Vocabulary.O200K),
        ("o3-mini", "gpt", Vocabulary.O200K),
        ("openai/o1", "gpt", Vocabulary.O200K),
        ("gpt-4", "gpt", Vocabulary.CL100K),
        ("gpt-4-turbo-2024-04-09", "gpt", Vocabulary.CL100K),
        ("gpt-3.5-turbo", "gpt", Vocabulary.CL100K),
    ],
)
def test_a_known_name_is_counted_exactly(model: str, name: str, vocabulary: Vocabulary) -> None:
    family = family_of(model)

    assert (family.name, family.vocabulary, family.grade) == (name, vocabulary, Grade.EXACT)


@pytest.mark.parametrize(
    "model", ["qwen2.5-7b", "claude-opus-4", "smollm-135m", "gpt-j-6b", "gpt4all-13b", "llama-30b", "foo1", "", "你好"]
)
def test_any_other_name_is_counted_as_gpt_and_says_so(model: str) -> None:
    family = family_of(model)

    assert (family.name, family.vocabulary, family.grade) == ("gpt", Vocabulary.CL100K, Grade.APPROXIMATE)


@pytest.mark.parametrize(
    ("model", "tokens"), [("mistral", 5), ("llama-3", 5), ("llama-2", 5), ("gpt-oss", 5), ("gpt-4o", 4), ("phi", 4)]
)
def test_a_message_costs_four_or_five_tokens_more(model: str, tokens: int) -> None:
    assert family_of(model).per_message == tokens


def test_a_name_that_says_nothing_names_no_family() -> None:
    assert family_name("mistral-nemo") == "mistral"
    assert family_name("qwen3-8b") == ""
