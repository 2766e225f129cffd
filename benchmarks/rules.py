"""Whether what a user lays down for all that comes is told from what is over with its answer, and outlasts it:
`python -m benchmarks.rules [--show]`.

Sentences in English and Chinese of which most rules hold no word that orders or forbids. Told: the share that counts as
a rule or constraint. Kept at a tenth: the share that still stands word for word where all of a set were said in one
conversation, in three orders, with long answers between them. Beside it the user's newest messages alone, as many as
have room, which is what a program keeps that cannot tell.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import yaml

from benchmarks.changes import WORDS as REPLIES
from benchmarks.changes import answered, compacted, newest
from benchmarks.devsets.case import Message

WORDS = Path(__file__).parent / "devsets" / "words" / "rules.yaml"
SHARE, ORDERS = 0.1, 3
KINDS = ("rule", "fact", "once")

Entry = Sequence[str]


def clause(entry: Entry) -> str:
    return " ".join(entry[-1].split())


def conversation(entries: Sequence[Entry], language: str, replies: dict[str, Any], order: int) -> list[Message]:
    shuffled = random.Random(order).sample(entries, len(entries))
    return answered([entry[1] for entry in shuffled], language, replies)


def is_told(entry: Entry) -> bool:
    from health.compaction.reading.ledger_patterns import EntryKind, ends_as_question, kind_of_sentence
    from health.compaction.reading.quoting import own_sentences

    of_it = [each for each in own_sentences(entry[1]) if each in entry[-1] or entry[-1][:10] in each]
    laid_down = (EntryKind.RULE, EntryKind.CONSTRAINT)
    return any(kind_of_sentence(each) in laid_down and not ends_as_question(each) for each in of_it)


def kept(entries: Sequence[Entry], texts: Sequence[str], kind: str) -> float:
    return fmean(clause(one) in " ".join(text.split()) for text in texts for one in entries if one[0] == kind)


def users_newest(messages: list[Message], share: float) -> str:
    return newest(messages, share, of=[one for one in messages if one["role"] == "user"])


def rows(said: dict[str, dict[str, list[Entry]]], show: bool) -> Iterator[tuple[str, ...]]:
    replies = yaml.safe_load(REPLIES.read_text())
    keeping: Sequence[Callable[[list[Message], float], str]] = (compacted, users_newest)
    for name, languages in said.items():
        for language, entries in languages.items():
            talks = [conversation(entries, language, replies, order) for order in range(ORDERS)]
            ours, theirs = ([keep(talk, SHARE) for talk in talks] for keep in keeping)
            for kind in KINDS:
                asked = [one for one in entries if one[0] == kind]
                found = [one for one in asked if is_told(one)]
                for one in asked if show else ():
                    if (one in found) is (kind == "once"):
                        print(f"{kind}: {clause(one)}")
                shares = (len(found) / len(asked), kept(entries, ours, kind), kept(entries, theirs, kind))
                yield f"{name}, {language}, {kind}", str(len(asked)), *(f"{100 * each:.0f}" for each in shares)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--show", action="store_true", help="print what is told wrongly")
    said = yaml.safe_load(WORDS.read_text())["sets"]
    print(f"{'in %':<16}{'of':>5}{'told':>7}{'kept':>7}{'newest':>8}")
    for what, of, told, ours, theirs in rows(said, asked.parse_args().show):
        print(f"{what:<16}{of:>5}{told:>7}{ours:>7}{theirs:>8}")


if __name__ == "__main__":
    import logging

    from benchmarks.in_process import prepare

    prepare()
    logging.disable(logging.WARNING)
    main()
