"""Methods that keep whole messages: at random, the newest, the nearest to the task, and an oracle.

None separates a call from its results. The oracle knows what is needed later.
"""

from __future__ import annotations

import heapq
import math
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from statistics import fmean
from typing import Any

from benchmarks.devsets.case import Message
from benchmarks.facts import FUNCTION_WORDS, has, is_near, places, text_of, words
from benchmarks.knowledge import REACH, steps
from benchmarks.recordings import Moment

Method = Callable[[Moment, int], list[Message]]
Groups = Iterable[Sequence[int]]
# Some of what is needed: its weight, and the sets of messages each of which tells it.
Need = tuple[float, list[frozenset[int]]]
USERS_SHARE = 0.4


def rounds(messages: Sequence[Message]) -> list[list[int]]:
    """What a user said and the first step in answer; each further step is a round of its own."""
    found: list[list[int]] = []
    answered = True
    for step in steps(messages):
        if answered:
            found.append([])
        found[-1] += step
        answered = messages[step[0]]["role"] != "user"
    return found


class Room:
    """What is kept beside the system prompt, as far as it fits."""

    def __init__(self, moment: Moment, limit: int) -> None:
        self.moment, self.room, self.kept = moment, limit - moment.fixed_tokens, set[int]()

    def cost(self, group: Iterable[int]) -> int:
        return sum(self.moment.sizes[at] for at in group if at not in self.kept)

    def fill(self, groups: Groups, *, share: float = 1.0, gaps: bool = True) -> Room:
        """Take the groups that fit, in this order; without gaps none behind the first that does not."""
        room = share * self.room - sum(self.moment.sizes[at] for at in self.kept)
        for group in groups:
            need = self.cost(group)
            if need <= room:
                self.kept.update(group)
                room -= need
            elif not gaps:
                break
        return self

    def messages(self) -> list[Message]:
        return self.moment.system + [one for at, one in enumerate(self.moment.messages) if at in self.kept]


def random_rounds(moment: Moment, limit: int) -> list[Message]:
    order = sorted(rounds(moment.messages), key=lambda one: zlib.crc32(f"{moment.id} {one}".encode()))
    return Room(moment, limit).fill(order).messages()


def keep_last(moment: Moment, limit: int) -> list[Message]:
    return Room(moment, limit).fill(reversed(steps(moment.messages)), gaps=False).messages()


def newest_user_words(moment: Moment, limit: int) -> list[Message]:
    """All that users typed, the newest first, in a share of the room; then the newest rounds."""
    said = [step for step in reversed(steps(moment.messages)) if moment.messages[step[0]]["role"] == "user"]
    return Room(moment, limit).fill(said, share=USERS_SHARE).fill(reversed(rounds(moment.messages))).messages()


def bm25_rounds(moment: Moment, limit: int) -> list[Message]:
    return Room(moment, limit).fill(_ranked(moment, rounds(moment.messages), moment.turns[-1])).messages()


def bm25_messages(moment: Moment, limit: int) -> list[Message]:
    return Room(moment, limit).fill(_ranked(moment, steps(moment.messages), moment.question)).messages()


def _ranked(moment: Moment, groups: Sequence[list[int]], query: str) -> list[list[int]]:
    """By BM25 (k1 1.2, b 0.75), of equal ones the newest."""
    bags = [Counter(word for at in group for word in words(text_of(moment.messages[at]))) for group in groups]
    seen, mean = Counter(word for bag in bags for word in bag), fmean(bag.total() for bag in bags)
    rarity = {
        word: math.log(1 + (len(bags) - seen[word] + 0.5) / (seen[word] + 0.5))
        for word in set(words(query)) - FUNCTION_WORDS
    }
    scores = [
        sum(
            rarity[word] * 2.2 * bag[word] / (bag[word] + 1.2 * (0.25 + 0.75 * bag.total() / mean))
            for word in rarity.keys() & bag.keys()
        )
        for bag in bags
    ]
    return [groups[at] for at in sorted(range(len(groups)), key=lambda at: (-scores[at], -at))]


def minilm_messages(moment: Moment, limit: int) -> list[Message]:
    """By the cosine of MiniLM with what is asked; of a call and its results the best counts."""
    asked = _embedded(moment.question)
    near = [float(_embedded(text_of(message)) @ asked) for message in moment.messages]
    order = sorted(steps(moment.messages), key=lambda step: -max(near[at] for at in step))
    return Room(moment, limit).fill(order).messages()


@cache
def _embedded(text: str) -> Any:
    return _minilm().encode([text])[0]


@cache
def _minilm() -> Any:
    from health.adapters.minilm import MiniLM

    return MiniLM()


def oracle(moment: Moment, limit: int) -> list[Message]:
    room = Room(moment, limit)
    room.kept = most_told(needs(moment), steps(moment.messages), moment.sizes, room=room.room)
    return room.messages()


def most_told(needed: Iterable[Need], groups: Groups, sizes: Sequence[int], *, room: int) -> set[int]:
    """Greedy: the groups of messages with most needed facts for their tokens."""
    wanted, kept = list(needed), set[int]()
    of_group = {at: tuple(group) for group in groups for at in group}
    ways = {frozenset(at for one in way for at in of_group.get(one, ())) for _, every in wanted for way in every}
    heap = [(-math.inf, sorted(way)) for way in ways]
    heapq.heapify(heap)
    while heap:
        _, way = heapq.heappop(heap)
        cost, gain = sum(sizes[at] for at in way if at not in kept), _gain(wanted, kept, way)
        if not gain or cost > room:
            continue
        rate = -gain / max(1, cost)
        if heap and rate > heap[0][0]:
            heapq.heappush(heap, (rate, way))
            continue
        kept.update(way)
        room -= cost
        wanted = [need for need in wanted if not _is_told(need, kept)]
    return kept


def _gain(wanted: Sequence[Need], kept: set[int], way: Iterable[int]) -> float:
    both = kept.union(way)
    return sum(need[0] for need in wanted if _is_told(need, both))


def _is_told(need: Need, kept: set[int]) -> bool:
    return any(way <= kept for way in need[1])


def needs(moment: Moment) -> Iterator[Need]:
    """Everything that `know` counts, and which messages tell it."""
    said = {at: text_of(one) for at, one in enumerate(moment.messages) if one["role"] != "system"}
    for probe in moment.probes.get("must_stand", ()):
        yield 1.0, list(_tellings(probe, said))
    for fact, was in moment.future.items():
        yield 1 / len(moment.future), [frozenset([at]) for at, text in said.items() if is_near(fact, was, text)]
    for fact in moment.told:
        yield 1 / len(moment.told), [frozenset([at]) for at, text in said.items() if has(fact, text)]


def _tellings(probe: Sequence[str], said: dict[int, str]) -> Iterator[frozenset[int]]:
    """The messages within reach of each place of a value, where what it is said of stands there too."""
    *about, value = (part.lower() for part in probe)
    starts: list[tuple[int, int]] = []
    size = 0
    for at, text in said.items():
        starts.append((size, at))
        size += len(text) + 1
    blob = "\n".join(said.values()).lower()
    for place in places(value, blob):
        low, high = place - REACH, place + len(value) + REACH
        if all(has(one, blob[max(0, low) : high]) for one in about):
            needed = [value, *about]
            yield frozenset(_within(starts, blob, low, high, needed))


def _within(starts: Sequence[tuple[int, int]], blob: str, low: int, high: int, needed: Sequence[str]) -> Iterator[int]:
    """Of the messages that reach into a stretch those that hold some of the strings."""
    for number, (begin, at) in enumerate(starts):
        end = starts[number + 1][0] if number + 1 < len(starts) else len(blob)
        if begin < high and end > low and any(has(one, blob[max(begin, low, 0) : min(end, high)]) for one in needed):
            yield at


CHANCE, ORACLE = "random rounds", "oracle"
RIVALS: dict[str, Method] = {
    CHANCE: random_rounds,
    "keep-last": keep_last,
    "BM25 rounds": bm25_rounds,
    "newest user words": newest_user_words,
}
ASKED: dict[str, Method] = {CHANCE: random_rounds, "BM25 messages": bm25_messages, "MiniLM messages": minilm_messages}
