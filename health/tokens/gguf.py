"""A byte-pair vocabulary out of the head of a GGUF file, where llama.cpp keeps it.

Only the metadata is read. The package for these files reads them whole, and needs a second and numpy for it.
Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Any

TOKENS = "tokenizer.ggml.tokens"
_TEXT, _ARRAY = 8, 9
_NUMBERS = {
    kind: Struct(f"<{code}") for kind, code in zip((0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12), "BbHhIif?Qqd", strict=True)
}
_HEADER, _KIND, _LENGTH = Struct("<4sIQQ"), Struct("<I"), Struct("<Q")


class _Reader:
    def __init__(self, file: bytes) -> None:
        self._file, self._at = file, 0

    def take(self, shape: Struct) -> tuple[Any, ...]:
        found = shape.unpack_from(self._file, self._at)
        self._at += shape.size
        return found

    def text(self) -> str:
        (length,) = self.take(_LENGTH)
        self._at += length
        return self._file[self._at - length : self._at].decode()

    def value(self, kind: int) -> Any:
        if kind == _TEXT:
            return self.text()
        if kind == _ARRAY:
            (of,), (length,) = self.take(_KIND), self.take(_LENGTH)
            return [self.value(of) for _ in range(length)]
        return self.take(_NUMBERS[kind])[0]


def metadata(file: bytes) -> Iterator[tuple[str, Any]]:
    """Names and values in the file's order; not more of it is read than is asked for."""
    reader = _Reader(file)
    _magic, _version, _tensors, pairs = reader.take(_HEADER)
    for _ in range(pairs):
        name, (kind,) = reader.text(), reader.take(_KIND)
        yield name, reader.value(kind)


def byte_pairs(file: bytes) -> dict[bytes, int]:
    """The ranks of GPT-2's kind of vocabulary. Bytes that it has no token for, as no text has them, come last."""
    tokens: list[str] = next(value for name, value in metadata(file) if name == TOKENS)
    byte_of = {char: byte for byte, char in _drawn().items()}
    ranks = {
        bytes(byte_of[char] for char in token): rank
        for rank, token in enumerate(tokens)
        if all(char in byte_of for char in token)
    }
    for byte in range(256):
        ranks.setdefault(bytes([byte]), len(tokens) + byte)
    return ranks


def _drawn() -> dict[int, str]:
    """How GPT-2 writes each byte as one visible character."""
    visible = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAC + 1), *range(0xAE, 0xFF + 1)]
    others = [byte for byte in range(256) if byte not in visible]
    return {byte: chr(byte) for byte in visible} | {byte: chr(256 + at) for at, byte in enumerate(others)}
