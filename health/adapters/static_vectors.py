"""Static word vectors: wordllama's, averaged over a text. A hundred times faster than MiniLM, and less sharp.

They serve where MiniLM is not installed or is too slow. wordllama brings its weights
but looks for its tokenizer in a folder of another name, so the weights are read without its code.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from health.adapters.weights import both_ends, check, folder

NAME = "wordllama"
PACKAGE = "wordllama"
WEIGHTS = "weights/l2_supercat_256.safetensors"
TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
SHA256 = {
    WEIGHTS: "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5",
    TOKENIZER: "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68",
}

# Both ends of a longer text: what it is about hardly changes after some thousand words.
MOST_CHARACTERS = 20_000


class StaticVectors:
    """The loaded vectors: 32,000 pieces of words, 256 numbers each, 33 MB."""

    name = NAME

    def __init__(self) -> None:
        path = folder(PACKAGE)
        check(path, SHA256)
        from safetensors.numpy import load_file  # only when it is asked for
        from tokenizers import Tokenizer

        self._table = load_file(path / WEIGHTS)["embedding.weight"].astype(np.float32)
        self._tokenizer = Tokenizer.from_file(str(path / TOKENIZER))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row of length 1 for each text, zeros for one without words."""
        cut = [both_ends(text, MOST_CHARACTERS) for text in texts]
        encodings = self._tokenizer.encode_batch(cut, add_special_tokens=False)
        rows = np.zeros((len(cut), self._table.shape[1]), dtype=np.float32)
        for row, encoding in zip(rows, encodings, strict=True):
            if encoding.ids:
                mean = self._table[encoding.ids].mean(axis=0)
                row[:] = mean / (np.linalg.norm(mean) or 1)
        return rows
