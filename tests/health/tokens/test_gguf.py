"""A vocabulary out of a GGUF file, and the demo model's own tokenizer beside it."""

from __future__ import annotations

import json
import struct
from urllib.request import Request, urlopen

import pytest

from benchmarks import llama, prose
from health.tokens.counters import counter_for
from health.tokens.families import Vocabulary
from health.tokens.vocabularies import SOURCES, TOKENS, _checked, byte_pairs, metadata


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def a_file(*pairs: tuple[str, int, bytes]) -> bytes:
    """The head of a GGUF file without tensors: names, kinds and written values."""
    head = struct.pack("<4sIQQ", b"GGUF", 3, 0, len(pairs))
    return head + b"".join(text(name) + struct.pack("<I", kind) + value for name, kind, value in pairs)


def tokens(*written: str) -> tuple[str, int, bytes]:
    return TOKENS, 9, struct.pack("<IQ", 8, len(written)) + b"".join(map(text, written))


def test_values_of_every_kind_are_read_in_order() -> None:
    file = a_file(
        ("name", 8, text("Käse")),
        ("layers", 4, struct.pack("<I", 30)),
        ("small", 1, struct.pack("<b", -3)),
        ("large", 10, struct.pack("<Q", 2**40)),
        ("yes", 7, b"\x01"),
        ("half", 6, struct.pack("<f", 0.5)),
        ("rows", 9, struct.pack("<IQ", 5, 2) + struct.pack("<2i", 7, -7)),
    )

    assert list(metadata(file)) == [
        ("name", "Käse"),
        ("layers", 30),
        ("small", -3),
        ("large", 2**40),
        ("yes", True),
        ("half", 0.5),
        ("rows", [7, -7]),
    ]


def test_a_token_is_the_bytes_that_its_characters_stand_for_and_its_rank_its_place() -> None:
    ranks = byte_pairs(a_file(tokens("a", "Ġ", "Ġa", "Ċ", "Ã©")))

    assert [ranks[one] for one in (b"a", b" ", b" a", b"\n", "é".encode())] == [0, 1, 2, 3, 4]


def test_no_byte_is_without_a_token() -> None:
    ranks = byte_pairs(a_file(tokens("a")))

    assert {bytes([byte]) for byte in range(256)} <= set(ranks)
    assert len(set(ranks.values())) == len(ranks)


def test_only_the_head_of_the_demo_models_file_is_read() -> None:
    source = SOURCES[Vocabulary.SMOLLM2]

    assert len(_checked(source)) == source.head


@pytest.mark.stack
def test_the_demo_models_own_tokenizer_says_the_same() -> None:
    said = [message["content"] for message in prose.conversation(prose.ENGLISH + prose.CHINESE, answer=600)]
    texts = [*said, "x  5", "  7\t\t8   9", "5's, don't, I'M", "١٢٣ ½", "\x00\x01", "a  \n b", "😀é", "<|im_end|>user"]

    with llama.server(context=512) as address:
        theirs = [_tokens(address, text) for text in texts]

    assert counter_for(llama.MODEL).count(texts) == theirs


def _tokens(address: str, text: str) -> int:
    body = json.dumps({"content": text, "add_special": False, "parse_special": False}).encode()
    with urlopen(Request(f"{address}/tokenize", body, {"Content-Type": "application/json"}), timeout=60) as answer:
        return len(json.load(answer)["tokens"])
