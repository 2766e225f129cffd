"""Conversations that strain the machinery: parallel calls, huge results, base64, Chinese, empty and null contents.

They are short of sense but not of form: every one is a request that a server accepts. What is needed stands in
the last line of a huge result, between base64, or in a Chinese message among English ones.
"""

from __future__ import annotations

import base64
import json
import random

from benchmarks.devsets.case import Case, Part, Transcript
from benchmarks.devsets.grammar import Draw, bank
from benchmarks.devsets.logs import build_log

_FIELDS = ("status", "owner", "region", "checksum", "retries", "note")


def stress(name: str, size: int) -> Case:
    """Strains in random order until the size is reached."""
    rng, transcript = random.Random(name), Transcript()
    transcript.say("system", "You are an agent that works through a queue of jobs. Keep what is asked of you in mind.")
    asked = transcript.say(
        "user", f"Work through the queue. «Report only jobs of region r{rng.randrange(10, 99)} at the end.»"
    )
    transcript.need(asked, "a constraint stated once", asked=True)
    strains = [_parallel, _oversize, _base64, _chinese, _empty, _null, _log]
    while transcript.chars < size:
        rng.shuffle(strains)
        for strain in strains:
            strain(transcript, rng)
    transcript.say("user", "Now the report, please: what was asked for, and which job failed for what reason?")
    task = (
        "Write the report: the failed jobs with their reasons, the decisions of the Chinese colleague, what was asked."
    )
    return transcript.case("stress", name, task)


def _row(rng: random.Random, **given: str) -> dict[str, str]:
    return {"job": f"J{rng.randrange(10**5, 10**6)}"} | {
        field: given.get(field) or f"{field[:3]}-{rng.randrange(10**4):04x}" for field in _FIELDS
    }


def _failure(rng: random.Random) -> dict[str, str]:
    reason = rng.choice(
        ["disk quota of volume", "missing key of tenant", "duplicate lease on shard", "stale token for bucket"]
    )
    return _row(rng, status="failed", note=f"{reason} v{rng.randrange(100, 999)}")


def _parallel(transcript: Transcript, rng: random.Random) -> None:
    """Calls side by side, answered in another order, one with an error."""
    count = rng.randrange(2, 7)
    ids = transcript.calls([("fetch_job", {"number": number}) for number in range(count)])
    failed = rng.randrange(count)
    for number in rng.sample(range(count), count):
        row = _failure(rng) if number == failed else _row(rng)
        at = transcript.result(ids[number], json.dumps(row))
        if number == failed:
            transcript.need([Part(row["note"], at)], "the one that failed", asked=True)
    transcript.say("assistant", "These are fetched.")


def _oversize(transcript: Transcript, rng: random.Random) -> None:
    """Hundreds of records, the one that matters near the end."""
    rows = [_row(rng) for _ in range(rng.randrange(40, 160))]
    rows.insert(len(rows) - rng.randrange(1, 9), _failure(rng))
    bad = next(row for row in rows if row["status"] == "failed")
    at = transcript.result(transcript.call("list_jobs", {"limit": len(rows)}), json.dumps(rows))
    transcript.need([Part(bad["note"], at)], "one record of many", asked=True)
    transcript.say("assistant", "")


def _base64(transcript: Transcript, rng: random.Random) -> None:
    """A picture as text, with a sentence beside it."""
    blob = base64.b64encode(rng.randbytes(rng.randrange(1500, 6000))).decode()
    code = f"{rng.randrange(1000, 9999)}-{rng.choice('ABCDEF')}"
    said = transcript.say(
        "user", f"Here is the screenshot: data:image/png;base64,{blob}\n«The meter on it reads {code}», note that."
    )
    transcript.need(said, "a sentence beside base64", asked=False)
    transcript.say("assistant", "Noted.")


def _chinese(transcript: Transcript, rng: random.Random) -> None:
    words = bank("chinese")
    draw = Draw(rng, words["slots"])
    talk = " ".join(draw.fresh(A="我", B="你").say(rng.choice(words["chatter"])) for _ in range(rng.randrange(4, 12)))
    decided = draw.say("«{city}那边的任务改到{day}再跑，由{name}负责»。")
    transcript.need(transcript.say("user", f"{talk} {decided}"), "a Chinese decision among English", asked=True)
    transcript.say("assistant", "好的，记下了。")


def _empty(transcript: Transcript, rng: random.Random) -> None:
    """Empty contents where text is expected."""
    transcript.result(transcript.call("ping", {}), "")
    transcript.say("assistant", "")
    transcript.say("user", "  \n ")
    transcript.say("assistant", "Shall I go on?")
    transcript.say("user", "yes")


def _null(transcript: Transcript, rng: random.Random) -> None:
    """Null contents, content parts, and a message with nothing but calls."""
    call = transcript.call("clock", {"zone": "UTC"})
    transcript.result(call, "12:00")
    transcript.messages.append({"role": "assistant", "content": None})
    transcript.messages.append({"role": "user", "content": [{"type": "text", "text": "Same as before."}]})
    transcript.say("assistant", "As before.")


def _log(transcript: Transcript, rng: random.Random) -> None:
    reason = f"[link] undefined symbol tr_{rng.randrange(100, 999)}_init in unit export, wanted by the night run"
    call = transcript.call("read_log", {"name": "night"})
    at = transcript.result(call, build_log(rng, rng.randrange(80, 200), reason))
    transcript.need([Part(reason, at)], "the one error in a long log", asked=True)
    transcript.say("assistant", "Read.")
