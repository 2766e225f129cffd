"""The family of a model, by its name alone: the vocabulary to count with, and how accurate that is.

In the table of rules the first row wins whose substring is in the name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache

from health.compaction.terms.ports import Grade


class Vocabulary(StrEnum):
    """The vocabularies that come with the packages in requirements/."""

    CL100K = "cl100k_base"
    O200K = "o200k_base"
    LLAMA3 = "llama-3"
    LLAMA2 = "llama-2"
    MISTRAL_V1 = "mistral-v1"
    MISTRAL_V3 = "mistral-v3"
    TEKKEN = "mistral-tekken"
    SMOLLM2 = "smollm2"


class ToolsAs(StrEnum):
    """How the model is shown the schemas of its tools."""

    JSON = "json"
    INDENTED_JSON = "indented json"
    TYPESCRIPT = "typescript"


@dataclass(frozen=True, kw_only=True, slots=True)
class Family:
    """Tokens of its chat template: `per_message` around each message, `opening` once, and `calling` for its text about
    calls if there are tools, beyond what most templates have."""

    name: str
    vocabulary: Vocabulary
    per_message: int = 4
    opening: int = 3
    calling: int = 0
    grade: Grade = Grade.EXACT
    tools_as: ToolsAs = ToolsAs.JSON


GPT = Family(name="gpt", vocabulary=Vocabulary.CL100K, tools_as=ToolsAs.TYPESCRIPT)
GPT_4O = replace(GPT, vocabulary=Vocabulary.O200K)
# Both templates add a system message with dates.
GPT_OSS = replace(GPT_4O, per_message=5, opening=70)
LLAMA3 = Family(name="llama3", vocabulary=Vocabulary.LLAMA3, per_message=5, tools_as=ToolsAs.INDENTED_JSON)
LLAMA31 = replace(LLAMA3, opening=27)
LLAMA2 = Family(name="llama2", vocabulary=Vocabulary.LLAMA2, per_message=5)
MISTRAL = Family(name="mistral", vocabulary=Vocabulary.MISTRAL_V3, per_message=5)
MISTRAL_V1 = replace(MISTRAL, vocabulary=Vocabulary.MISTRAL_V1)
TEKKEN = replace(MISTRAL, vocabulary=Vocabulary.TEKKEN)
# The demo's. Its template adds a system message if there is none.
SMOLLM2 = Family(name="smollm2", vocabulary=Vocabulary.SMOLLM2, per_message=5)
UNKNOWN = Family(name="gpt", vocabulary=Vocabulary.CL100K, grade=Grade.APPROXIMATE)

# Its template explains at length how a call is written.
QWEN35 = replace(UNKNOWN, name="qwen3.5", calling=155)

# What each row means is in tests/health/tokens/test_families.py, name by name.
_ROWS = (
    (r"llama[-_ ]?3[._]\d", LLAMA31),
    (r"llama[-_ ]?3(?!\d)|distill-llama", LLAMA3),
    (r"llama[-_ ]?2(?!\d)|codellama|tinyllama|vicuna", LLAMA2),
    # Mistral moved to Tekken with Nemo; its small, medium and large models with those of 2025.
    (r"mistral-?nemo|ministral|pixtral-12b|magistral|devstral|voxtral|tekken", TEKKEN),
    (r"(?:mistral|pixtral)-(?:small|medium|large).*2[34](?:0[1-9]|1[0-2])(?!\d)", MISTRAL),
    (r"mistral-(?:small|medium|large)", TEKKEN),
    (r"mistral.*v0\.[12]|mixtral-?8x7b|mistral-v1$", MISTRAL_V1),
    (r"mistral|mixtral|pixtral|codestral|mathstral", MISTRAL),
    (r"smollm-?2", SMOLLM2),
    (r"gpt-oss", GPT_OSS),
    (r"gpt-?4o|gpt-?4\.[15]|gpt-?[5-9]|(?:^|[/:])o[1-9](?:$|[-:])|^o200k", GPT_4O),
    (r"gpt-?(?:4|3\.?5)(?:$|[-:_])|^cl100k", GPT),
    (r"qwen-?3[._]\d", QWEN35),
    (r"gpt", UNKNOWN),
)
_TABLE = tuple((re.compile(pattern), family) for pattern, family in _ROWS)


def family_name(model: str) -> str:
    """The family's name to show; empty if unknown, although such a model is counted as GPT."""
    found = family_of(model)
    return "" if found is UNKNOWN else found.name


@lru_cache(maxsize=1024)
def family_of(model: str) -> Family:
    """The family of a model's name, ignoring case. An unknown name is counted as GPT, approximately."""
    name = model.lower()
    return next((family for pattern, family in _TABLE if pattern.search(name)), UNKNOWN)
