"""What is kept of chats as people have them: `python -m benchmarks.chats [--show]`.

Thirty conversations by four authors who had not seen the program (16 English, 14 Chinese; messy, over days), with what
holds at the end, what no longer does, what only looks as if it were changed, and rules. `gone` says which sentences
lose their force, rightly or wrongly, before anything is left out, `told` which sentences count as rules. `known` is
kept if the sentence stands, or its value with three of its words around it; `misled` is the old sentence without the
one that ended it. `useless` is what nobody needs later. The chats called judged were read by nobody who changed the
engine: only their sums were seen.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.changes import SHARES, compacted, newest

CHATS = Path(__file__).parent / "devsets" / "chats"
JUDGED = ("en-14", "en-15", "en-16", "zh-12", "zh-13", "zh-14")
AROUND, WORDS = 100, 3
HEARD = ("outdated", "in force", "look-alikes")
LISTS = {"known": "in_force", "rules": "rules", "misled": "outdated", "useless": "useless"}
_WORD = re.compile(r"[a-z0-9]{3,}|(?=([\u4e00-\u9fff]{2}))")

Chat = Mapping[str, Any]
Counts = Counter[str]


def words_of(text: str) -> set[str]:
    """Words of three letters or more, and pairs of Chinese."""
    return {found[0] or found[1] for found in _WORD.finditer(text.lower())}


def is_known(one: Mapping[str, str], text: str) -> bool:
    if one["sentence"] in text:
        return True
    beside = words_of(one["sentence"]) - words_of(one["value"])
    least = min(WORDS, max(1, len(beside) // 2))
    places = (found.start() for found in re.finditer(re.escape(one["value"]), text))
    around = (text[max(0, at - AROUND) : at + len(one["value"]) + AROUND] for at in places)
    return any(len(beside & words_of(each)) >= least for each in around)


def gone_of(chat: Chat) -> list[str]:
    """The sentences that the engine holds for outdated."""
    from health.compaction.reading.values import Said, heard
    from health.compaction.terms.units import Role

    said = tuple(Said(Role(message["role"]), message["content"]) for message in chat["messages"])
    return [one.text for one in heard(said).gone]


def heard_in(chat: Chat) -> Counts:
    gone = gone_of(chat)

    def hit(sentence: str) -> bool:
        return any(one in sentence or sentence in one for one in gone)

    return Counter(
        {
            "outdated": sum(hit(one["sentence"]) for one in chat["outdated"]),
            "of outdated": len(chat["outdated"]),
            "in force": sum(hit(one["sentence"]) for one in chat["in_force"]),
            "of in force": len(chat["in_force"]),
            "look-alikes": sum(hit(one["earlier"]) for one in chat["looks_alike"]),
            "of look-alikes": len(chat["looks_alike"]),
        }
    )


def told_in(chat: Chat) -> Counts:
    """The user's sentences that count as rules."""
    from health.compaction.reading.ledger_patterns import EntryKind, ends_as_question, kind_of_sentence
    from health.compaction.reading.quoting import own_sentences

    counts = Counts()
    for message in chat["messages"]:
        for one in own_sentences(message["content"]) if message["role"] == "user" else ():
            kind = "rules" if any(one in rule or rule[:10] in one for rule in chat["rules"]) else "others"
            counts[f"of {kind}"] += 1
            counts[kind] += kind_of_sentence(one) is EntryKind.RULE and not ends_as_question(one)
    return counts


def kept_in(chat: Chat, text: str) -> Counts:
    misled = (one for one in chat["outdated"] if is_known(one, text) and one["by"] not in text)
    return Counter(
        known=sum(is_known(one, text) for one in chat["in_force"]),
        rules=sum(one in text for one in chat["rules"]),
        useless=sum(one in text for one in chat["useless"]),
        misled=sum(1 for _ in misled),
    )


def ways(chat: Chat, share: float) -> Iterator[tuple[str, str]]:
    messages = list(chat["messages"])
    yield "ours", compacted(messages, share)
    yield "newest", newest(messages, share)
    yield "newest of the user", newest(messages, share, [one for one in messages if one["role"] == "user"])


def show(chat: Chat, text: str) -> None:
    print(*(f"{chat['id']} gone: {one}" for one in gone_of(chat)), sep="\n")
    print(*(f"{chat['id']} lost: {one['sentence']}" for one in chat["in_force"] if not is_known(one, text)), sep="\n")


def table(chats: Sequence[Chat]) -> None:
    told = sum(map(heard_in, chats), Counts())
    print(
        "gone:", *(f"{told[what]} of {told[f'of {what}']} {what}" for what in ("outdated", "in force", "look-alikes"))
    )
    told = sum(map(told_in, chats), Counts())
    print("told:", *(f"{told[what]} of {told[f'of {what}']} {what}" for what in ("rules", "others")))
    found: dict[str, Counts] = {}
    for chat in chats:
        found.setdefault("of", Counts()).update({name: len(chat[what]) for name, what in LISTS.items()})
        for share in SHARES:
            for way, text in ways(chat, share):
                found.setdefault(f"{100 * share:.0f} %, {way}", Counts()).update(kept_in(chat, text))
    print(f"{'kept':<26}", *(f"{name:>8}" for name in found["of"]))
    for way, kept in found.items():
        print(f"{way:<26}", *(f"{kept[name]:>8}" for name in found["of"]))


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--show", action="store_true", help="print what is outdated, and what is lost at a quarter")
    given = asked.parse_args()
    chats: list[Chat] = [json.loads(path.read_text()) for path in sorted(CHATS.glob("*.json"))]
    for name, which in (("looked at", False), ("judged", True)):
        for language in ("en", "zh"):
            these = [one for one in chats if one["language"] == language and (one["id"] in JUDGED) is which]
            print(f"\n{len(these)} chats, {language}, {name}")
            table(these)
            for chat in these if given.show else ():
                show(chat, compacted(list(chat["messages"]), 0.25))


if __name__ == "__main__":
    import logging

    from benchmarks.in_process import prepare

    prepare()
    logging.disable(logging.WARNING)
    main()
