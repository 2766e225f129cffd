"""How a batch of texts is measured by each kind of tokenizer: tiktoken, `tokenizers`, sentencepiece.

Control tokens spelled out in a text ("<|im_end|>", "</s>") count as the ordinary characters they are. The
libraries are imported when a vocabulary is opened, so that a missing one costs one family, not the process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

# Tokens of each text alone.
Sizes = Callable[[Sequence[str]], list[int]]

# Two code points that no text may hold: they stand between texts that are encoded in one call.
_BETWEEN = "\U0010fffe\U0010ffff"
# As measured: fewer texts gain nothing by it, more fall out of the processor's cache.
_WORTH_JOINING, _AT_ONCE = 4, 1_000


def by_tiktoken(pattern: str, ranks: dict[bytes, int]) -> Sizes:
    """Byte pairs. Many short texts go in one call, joined by a control token: exact, as tiktoken cuts there first.

    `ranks` is empty afterwards: tiktoken has its own copy, and a second one takes some 28 MB in each process.
    """
    from tiktoken import Encoding

    between = max(ranks.values()) + 1
    encoding = Encoding("ours", pat_str=pattern, mergeable_ranks=ranks, special_tokens={_BETWEEN: between})
    ranks.clear()

    def together(texts: Sequence[str]) -> list[int]:
        joined = _BETWEEN.join(texts)
        # Lone surrogates, too, are left to the slow way, which knows what to do about them.
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
