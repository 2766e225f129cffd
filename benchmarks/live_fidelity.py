"""What a compaction of recordings keeps by the live path, beside the library: `python -m benchmarks.live_fidelity DIR`.

DIR has recordings and a `measure.py` with `cases`, `measure`, `table` and `product`; nothing of it is copied. By the
live path a conversation is stored as `/v1` stores it, a run is queued and worked at as a worker does, and the next
request is rendered. A live run stops at its goal, so its limit is set where it ends at the limit that is measured.
The library is measured at that limit, too, and in the last row with the chain and the settings of the run: where both
paths are one engine, the last two rows keep the same.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from benchmarks.in_process import prepare
from health.tokens.calibration import ENOUGH_SAMPLES

if TYPE_CHECKING:
    from dialogs.models import Dialog
    from dialogs.providers.base import ChatMessage
    from health.models import CompactionRun

Message = dict[str, Any]
LIBRARY, LIVE, AS_LIVE = "dominds", "live path", "library, as live"
# A window larger than any recording.
WINDOW = 1_000_000
TRIES = 4


def measuring(folder: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("recorded_measure", folder / "measure.py")
    if spec is None or spec.loader is None:
        raise SystemExit(f"There is no measure.py in {folder}.")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@dataclass
class LivePath:
    """Compacts recordings in one installation; each becomes a dialog of its own."""

    key: Any
    llm: Any
    stored: int = 0
    calibrated: int = 0
    # The run's limit that was used in the end, by case and limit.
    aims: dict[tuple[int, int], int] = field(default_factory=dict)

    def compacted(self, case: Any, limit: int) -> tuple[list[Message], bool]:
        """At most `limit`: a goal may be passed by what must stay, so a smaller one is tried then."""
        from health.tokens.messages import count_messages

        aim = limit
        for _ in range(TRIES):
            self.aims[id(case), limit] = aim
            sent, failed = self.once(case.messages, aim)
            size = count_messages(sent, "")
            if failed or size <= limit:
                break
            aim = int(aim * limit / size * 0.99)
        return sent, failed

    def once(self, messages: Sequence[Message], aim: int) -> tuple[list[Message], bool]:
        from dialogs.compaction.work import perform
        from dialogs.context.border import chat_request
        from dialogs.context.estimate import offered_tools, present_context
        from dialogs.turns.reads.turns import dialog_to_drive
        from health.models import CompactionRun

        run = self.queued(messages, aim)
        perform(run.pk, embedder="static")
        run = CompactionRun.objects.get(pk=run.pk)
        dialog = dialog_to_drive(run.dialog_id)
        request = chat_request(present_context(dialog), tools=offered_tools(dialog))
        return [as_sent(one) for one in request.messages], run.status != CompactionRun.Status.APPLIED

    def like_the_library(self, case: Any, limit: int) -> tuple[list[Message], bool]:
        """`compact_messages` with the chain, the settings and the limit that the run of this case had; and with the ids
        of the stored messages, which stand in the ledger and cost tokens there."""
        from dialogs.compaction.work import config_for
        from dialogs.context.estimate import present_context
        from dialogs.context.material import units_of
        from dialogs.turns.reads.turns import dialog_to_drive
        from health.services import compact_messages

        run = self.queued(case.messages, self.aims.get((id(case), limit), limit))
        units = units_of(present_context(dialog_to_drive(run.dialog_id)))
        found = compact_messages(
            [{**message, "id": unit.id} for message, unit in zip(case.messages, units, strict=True)],
            limit_tokens=run.limit_tokens,
            chain=run.chain,
            config=config_for(run),
            embedder="static",
        )
        bare = [{key: value for key, value in message.items() if key != "id"} for message in found.messages]
        return bare, found.status == "failed"

    def queued(self, messages: Sequence[Message], aim: int) -> CompactionRun:
        """A run of the guard's, with the limit of which `aim` is the goal."""
        from dialogs.compaction.work import config_for
        from dialogs.compaction.writes.compaction import queue_run
        from dialogs.llms.guard import guard_of
        from health.models import CompactionRun

        dialog = self.dialog_of(messages)
        self.calibrate(dialog)
        guard = guard_of(dialog)
        assert guard is not None, "Nobody guards this dialog."
        goal = config_for(CompactionRun(dialog=dialog, trigger=CompactionRun.Trigger.PRE_REQUEST)).goal
        guard = replace(guard, limit=round(aim / goal), reserve=0)
        return queue_run(dialog, guard=guard, trigger=CompactionRun.Trigger.PRE_REQUEST)

    def calibrate(self, dialog: Dialog) -> None:
        """Learn a report that equals the estimate, so that there is no margin: `compact_messages` has none either."""
        from dialogs.context.estimate import Sizing, offered_tools, present_context
        from dialogs.context.writes import learn_from_usage

        while self.calibrated < ENOUGH_SAMPLES:
            told = Sizing(present_context(dialog), offered_tools(dialog)).request_estimate
            learn_from_usage(llm=dialog.llm, estimate=told, reported=told.raw.text + told.raw.tools)
            self.calibrated += 1

    def dialog_of(self, messages: Sequence[Message]) -> Dialog:
        """As `/v1` stores it. No two recordings that begin alike become one dialog."""
        from dialogs.turns.reads.turns import dialog_to_drive
        from tests.client_dialogs import ask

        self.stored += 1
        return dialog_to_drive(ask(self.key, self.llm, *messages, chat=f"recording {self.stored}").pk)


def a_house() -> LivePath:
    from django.contrib.auth.models import User

    from dialogs.api.writes.api_keys import create_key
    from dialogs.models import LLM, Provider

    provider = Provider.objects.create(name="recorded", kind="openai", base_url="http://127.0.0.1:9/v1")
    llm = LLM.objects.create(
        provider=provider, model_id="recorded", context_length=WINDOW, context_length_source="admin"
    )
    return LivePath(create_key(owner=User.objects.create_user("bench"), name="bench")[0], llm)


def as_sent(message: ChatMessage) -> Message:
    found: Message = {"role": message.role, "content": message.content}
    if message.tool_call_id:
        found["tool_call_id"] = message.tool_call_id
    if message.tool_calls:
        found["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.tool_calls
        ]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recordings", type=Path)
    parser.add_argument("--kinds")
    parser.add_argument("--ratios", default="0.5,0.25,0.1,abs")
    parser.add_argument("--every", type=int, default=1, help="only every so many cases")
    parser.add_argument("--json", metavar="FILE", type=Path, help="every row, as measure.py writes them")
    given = parser.parse_args()
    prepare()
    measured, live = measuring(given.recordings), a_house()
    peers = {LIBRARY: measured.product, LIVE: live.compacted, AS_LIVE: live.like_the_library}
    found = list(measured.cases((given.kinds or measured.KINDS).split(",")))[:: given.every]
    rows = [row for case in found for row in measured.measure(case, given.ratios.split(","), peers, show=False)]
    measured.table(rows)
    alike, fitting = same(rows)
    print(f"\n{alike} of {fitting} cases that fit keep the same by the live path and by the library as live.")
    if given.json:
        given.json.write_text(json.dumps(rows))


def same(rows: Sequence[dict[str, Any]]) -> tuple[int, int]:
    """Of how many cases both paths lost the same, and how many there are. What is over its limit loses more, unasked:
    the library leaves messages apart that the live path sends as one, so it needs a few tokens more."""
    lost: dict[tuple[str, str], list[Any]] = {}
    for row in rows:
        if row["peer"] in (LIVE, AS_LIVE) and not row["over limit"]:
            lost.setdefault((row["case"], row["ratio"]), []).append(row["lost"])
    pairs = [found for found in lost.values() if len(found) == 2]
    return sum(one == other for one, other in pairs), len(pairs)


if __name__ == "__main__":
    main()
