"""Whether what a user says later takes the place of what they said before, and only of that, however long the answers:
`python -m benchmarks.changes [--show] [--seeds N]`.

Pairs in English and Chinese that state no number and mostly no name. A change is right if after a compaction to six
tenths of the tokens only the later sentence stands; two that only look like a change if the earlier one still stands.
Beside it what an engine has that never replaces anything, or that keeps the newest messages. Then all pairs of a set in
one conversation, shuffled, the earlier sentences before the later ones: how many are missing that nothing changed.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import yaml

from benchmarks.devsets.case import Message

WORDS = Path(__file__).parent / "devsets" / "words" / "changes.yaml"
SHARE, SHARES = 0.6, (0.5, 0.25, 0.1)  # of pairs, of scripts


class Pair(NamedTuple):
    language: str
    is_change: bool
    old: str
    new: str


def conversation(pair: Pair, words: dict[str, Any]) -> list[Message]:
    first, second, third = words["between"][pair.language]
    return answered((second, pair.old, first, third, pair.new), pair.language, words)


def answered(said: Sequence[str], language: str, words: dict[str, Any]) -> list[Message]:
    replies: Sequence[str] = words["replies"][language]
    told: list[Message] = []
    for at, text in enumerate(said):
        told += [{"role": "user", "content": text}, {"role": "assistant", "content": replies[at % len(replies)]}]
    return [*told, {"role": "user", "content": words["more"][language]}]


def missing(pairs: Sequence[Pair], words: dict[str, Any], seed: int) -> set[str]:
    """What should stand and does not, where all the pairs are told in one conversation."""
    dice = Random(seed)
    olds, news = list(dict.fromkeys(pair.old for pair in pairs)), [pair.new for pair in pairs]
    dice.shuffle(olds)
    dice.shuffle(news)
    text = compacted(answered([*olds, *news], pairs[0].language, words))
    return {one for one in {*olds, *news} - {pair.old for pair in pairs if pair.is_change} if one not in text}


def compacted(messages: list[Message], share: float = SHARE) -> str:
    from health.services import compact_messages
    from health.tokens.messages import count_messages

    limit = int(share * count_messages(messages, ""))
    outcome = compact_messages(messages, limit_tokens=limit, embedder="none")
    return "\n".join(str(message["content"] or "") for message in outcome.messages)


def newest(messages: list[Message], share: float = SHARE, of: Sequence[Message] = ()) -> str:
    """The newest messages, or the newest `of` them, as many as have room."""
    from health.tokens.messages import count_messages

    left, kept = share * count_messages(messages, ""), []
    for message in reversed(of or messages):
        left -= count_messages([message], "")
        if left < 0:
            break
        kept.append(str(message["content"]))
    return "\n".join(kept)


def is_right(pair: Pair, text: str) -> bool:
    return (pair.new in text and pair.old not in text) if pair.is_change else pair.old in text


def rows(words: dict[str, Any], show: bool) -> Iterator[tuple[str, ...]]:
    for name, said in words["sets"].items():
        pairs = [Pair(*one) for one in said]
        for is_change in sorted({pair.is_change for pair in pairs}, reverse=True):
            asked = [pair for pair in pairs if pair.is_change is is_change]
            told = [conversation(pair, words) for pair in asked]
            ours = [pair for pair, messages in zip(asked, told, strict=True) if is_right(pair, compacted(messages))]
            theirs = sum(is_right(pair, newest(messages)) for pair, messages in zip(asked, told, strict=True))
            for pair in asked if show else ():
                if pair not in ours:
                    print(f"{pair.old} -> {pair.new}")
            never = 0 if is_change else len(asked)
            kind = "changes" if is_change else "look-alikes"
            yield f"{name}, {kind}", *map(str, (len(asked), len(ours), theirs, never))


def together(words: dict[str, Any], seeds: int, show: bool) -> Iterator[tuple[str, int, int, float]]:
    """Of each set and language how many sentences should stand, and how many are missing in the mean."""
    for name, said in words["sets"].items():
        for language in ("en", "zh"):
            pairs = [pair for pair in (Pair(*one) for one in said) if pair.language == language]
            of = len({text for pair in pairs for text in (pair.old, pair.new)} - {p.old for p in pairs if p.is_change})
            lost = [missing(pairs, words, seed) for seed in range(seeds)]
            if show:
                print(*sorted(set[str]().union(*lost)), sep="\n")
            yield f"{name}, {language}", of, seeds, sum(map(len, lost)) / seeds


def told(words: dict[str, Any], share: float) -> Iterator[tuple[str, ...]]:
    """Of the scripts of each set the values in force and the outdated ones that stand, ours beside the newest's."""
    scripts = words["scripts"]
    for name in sorted({script["id"][0] for script in scripts}):
        of_set = [script for script in scripts if script["id"][0] == name]
        talks = [answered(script["turns"], script["language"], words) for script in of_set]
        ours, theirs = ([keep(talk, share) for talk in talks] for keep in (compacted, newest))
        for what in ("in_force", "outdated"):
            of = sum(len(script[what]) for script in of_set)
            kept = (
                sum(each in text for script, text in zip(of_set, texts, strict=True) for each in script[what])
                for texts in (ours, theirs)
            )
            yield f"{name}, {what}, {100 * share:.0f} %", str(of), *map(str, kept)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--show", action="store_true", help="print the pairs that are wrong")
    asked.add_argument("--seeds", type=int, default=3, help="how often all pairs of a set are shuffled")
    given, words = asked.parse_args(), yaml.safe_load(WORDS.read_text())
    print(f"{'right':<22}{'of':>5}{'ours':>6}{'newest':>8}{'never':>7}")
    for what, of, ours, theirs, never in rows(words, given.show):
        print(f"{what:<22}{of:>5}{ours:>6}{theirs:>8}{never:>7}")
    print(f"\n{'together':<22}{'should stand':>13}{'seeds':>7}{'missing':>9}")
    for where, stand, seeds, lost in together(words, given.seeds, given.show):
        print(f"{where:<22}{stand:>13}{seeds:>7}{lost:>9.1f}")
    print(f"\n{'turn by turn':<22}{'of':>5}{'ours':>6}{'newest':>8}")
    for share in SHARES:
        for what, values, ours, theirs in told(words, share):
            print(f"{what:<22}{values:>5}{ours:>6}{theirs:>8}")


if __name__ == "__main__":
    import logging

    from benchmarks.in_process import prepare

    prepare()
    logging.disable(logging.WARNING)
    main()
