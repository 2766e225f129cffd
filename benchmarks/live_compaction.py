"""The time from a compaction's trigger to the view in force: 50 messages of about 200 tokens, by the real worker.

`python -m benchmarks.live_compaction [runs]`. From the moment before the run is queued until its row says applied: the
database, Redis, the worker, the engine with MiniLM, and the compare-and-swap. The first run loads the model.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from statistics import quantiles

from benchmarks.streaming import PASSWORD
from tests.stack import running_stack

ROWS = """
import json, time
from django.contrib.auth.models import User
from django.utils import timezone
from dialogs.llms.guard import by_limit
from dialogs.models import LLM, Agent, Course, Dialog, Provider
from dialogs.compaction.writes.compaction import queue_run
from health.models import CompactionRun
from tests.dialogs.compacting_builders import a_history
provider = Provider.objects.create(name="scripted", kind="scripted", base_url="script.json")
llm = LLM.objects.create(provider=provider, model_id="tiny", context_length=100_000)
agent = Agent.objects.create(name="Helper", slug="helper", llm=llm, context_budget=True, context_limit=8000)
def a_run():
    dialog = Dialog.objects.create(owner=User.objects.first(), agent=agent, llm=llm, active_at=timezone.now())
    Course.objects.create(dialog=dialog, number=1)
    a_history(dialog, pairs=25, sentences=9)
    since = time.time_ns()
    run = queue_run(dialog, guard=by_limit(dialog), trigger="pre_request")
    while CompactionRun.objects.values_list("status", flat=True).get(pk=run.pk) in ("queued", "running"):
        time.sleep(0.005)
    assert CompactionRun.objects.get(pk=run.pk).status == "applied"
    return (time.time_ns() - since) / 1e6
print(json.dumps([a_run() for _ in range({runs})]))
"""


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        data.mkdir()
        with running_stack(
            data, "--no-demo", DOMINDS_ADMIN_PASSWORD=PASSWORD, DOMINDS_EMBEDDINGS_IDLE_SECONDS="0"
        ) as stack:
            # It has loaded the model by then.
            time.sleep(40)
            first, *warm = json.loads(stack.shell(ROWS.replace("{runs}", str(runs))).splitlines()[-1])
    marks = quantiles(warm, n=20)
    print(f"first {first:,.0f} ms; then {len(warm)} runs: p50 {marks[9]:,.0f} ms, p95 {marks[18]:,.0f} ms")


if __name__ == "__main__":
    main()
