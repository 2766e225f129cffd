"""What a dialog's page costs the web process: `python -m benchmarks.page_cost [--profile FILE]`.

A short answer in a dialog of a hundred messages: each change of its row as a tab is told of it, from the database to
the fragments. The whole page of a dialog of five thousand messages. And an answer of 4,000 words as it streams: what
one tab is sent, and what making that costs. CPU of this process, and counts; SQLite in a file.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks.in_process import prepare

if TYPE_CHECKING:
    from dialogs.models import Dialog

SHORT, LONG, WORDS = 100, 5_000, 4_000
ROUNDS = 12
SAID = "The migration is planned for **Friday**; `db-%d` is read-only from then on.\n\n- one\n- two\n\nSee the runbook."


def dialog_of(count: int) -> Dialog:
    """With so many messages, every second one answered and reported."""
    from django.contrib.auth.models import User
    from django.utils import timezone

    from dialogs.models import LLM, Agent, Dialog, Message, Provider
    from dialogs.pages.writes import create_dialog
    from tests.builders import a_generation

    provider, _new = Provider.objects.get_or_create(name="p", kind="openai", base_url="http://127.0.0.1:9/v1")
    llm, _new = LLM.objects.get_or_create(provider=provider, model_id="m", defaults={"context_length": 200_000})
    agent, _new = Agent.objects.get_or_create(slug="bench", defaults={"name": "Bench", "llm": llm})
    owner, _new = User.objects.get_or_create(username="bench")
    dialog = create_dialog(owner=owner, agent=agent)
    course = dialog.courses.get()
    parent = None
    for seq in range(1, count + 1):
        role, origin = ("user", "typed") if seq % 2 else ("assistant", "agent")
        text = f"Question {seq}?" if seq % 2 else SAID % seq
        parent = Message.objects.create(
            dialog=dialog,
            course=course,
            seq=seq,
            turn=(seq + 1) // 2,
            role=role,
            origin=origin,
            content=text,
            parent=parent,
        )
    Dialog.objects.filter(pk=dialog.pk).update(current_leaf=parent, last_seq=count, active_at=timezone.now())
    dialog.refresh_from_db()
    if parent is not None and parent.parent is not None:
        a_generation(dialog, prompt_leaf=parent.parent, message=parent, status="finished", prompt_tokens=900)
    return dialog


def short_answer(dialog: Dialog, look: Callable[[], None]) -> None:
    """One turn as the driver writes it; `look` after each change that a tab is told of."""
    from dialogs.driver.calls import begin
    from dialogs.driver.guarding import LoadedDialog
    from dialogs.models import Dialog
    from dialogs.turns.reads.turns import dialog_to_drive
    from dialogs.turns.writes import generations, lease
    from dialogs.turns.writes.messages import post_message
    from health.monitor.levels import Usage

    post_message(dialog=Dialog.objects.get(pk=dialog.pk), content="And now?")
    look()
    claim = lease.claim(dialog.pk)
    assert claim is not None
    call = begin(claim, LoadedDialog(dialog_to_drive(dialog.pk)), attempt=1)
    look()
    usage = Usage(prompt_tokens=1000, completion_tokens=9, total_tokens=1009)
    answer = generations.Answer(text="On *Friday*, as planned.", usage=usage, finish_reason="stop")
    generations.finish(claim, generation=call.generation, answer=answer)
    look()
    lease.release(claim)
    look()


@contextmanager
def counted(found: dict[str, int]) -> Iterator[None]:
    """Statements, and templates that are rendered from the outside."""
    from django.db.backends.utils import CursorWrapper
    from django.template.backends.django import Template

    def noted(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            found[name] = found.get(name, 0) + 1
            return real(*args, **kwargs)

        return call

    execute, render = CursorWrapper.execute, Template.render
    CursorWrapper.execute = noted("statements", execute)  # type: ignore[method-assign]
    Template.render = noted("templates", render)  # type: ignore[method-assign]
    try:
        yield
    finally:
        CursorWrapper.execute, Template.render = execute, render  # type: ignore[method-assign]


def watch_short_answers(profile: cProfile.Profile | None) -> None:
    from dialogs.pages.live_view import PageDiff, _render

    dialog, screen = dialog_of(SHORT), PageDiff()
    spent, sent, counts = [0.0], [0], dict[str, int]()

    def look() -> None:
        before = time.process_time()
        with profile or nullcontext():
            rendering = _render(dialog.pk, "en", 100)
            assert rendering is not None
            sent[0] += len(screen.update(rendering).encode())
        spent[0] += time.process_time() - before

    look()
    taken, sizes = [], []
    for _round in range(ROUNDS):
        spent[0], sent[0] = 0.0, 0
        short_answer(dialog, look)
        taken.append(1000 * spent[0])
        sizes.append(sent[0])
    with counted(counts):
        counts.clear()
        short_answer(dialog, look)
    print(
        f"a short answer among {SHORT} messages, four looks: CPU {min(taken):.0f} ms at the least, {median(taken):.0f} "
        f"in the median; {median(sizes):,.0f} bytes; {counts} with the turn's own"
    )


def open_long() -> None:
    from django.test import Client

    dialog, client = dialog_of(LONG), Client()
    client.force_login(dialog.owner)
    taken, wall = [], []
    for _round in range(ROUNDS):
        before, began = time.process_time(), time.perf_counter()
        answer = client.get(f"/dialogs/{dialog.pk}/", HTTP_HOST="localhost")
        assert answer.status_code == 200
        taken.append(1000 * (time.process_time() - before))
        wall.append(1000 * (time.perf_counter() - began))
    print(
        f"the page of {LONG:,} messages: CPU {min(taken):.0f} ms at the least, {median(taken):.0f} in the median; "
        f"wall {min(wall):.0f}, {median(wall):.0f}; {len(answer.content):,} bytes"
    )


def stream_long() -> None:
    """Ten words a state, as a quick model has them every 60 ms."""
    from dialogs.pages.live_view import PageDiff

    screen, text, sent = PageDiff(), "", 0
    before = time.process_time()
    for number in range(0, WORDS, 10):
        more = " ".join(f"word{at}" for at in range(number, number + 10)) + ("\n\n" if number % 120 == 110 else " ")
        frame = screen.stream(text=more, reasoning="", at=len(text))
        text += more
        sent += len(frame.encode())
    spent = 1000 * (time.process_time() - before)
    print(
        f"an answer of {WORDS:,} words ({len(text):,} bytes) in {WORDS // 10} states: {sent:,} bytes to a tab "
        f"({sent / len(text):.1f} times the answer), CPU {spent:.0f} ms"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--profile", metavar="FILE", help="keep where a short answer's time goes, for pstats")
    wanted = parser.parse_args()
    prepare()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    profile = cProfile.Profile(time.process_time) if wanted.profile else None
    watch_short_answers(profile)
    if profile:
        profile.dump_stats(wanted.profile)
    open_long()
    stream_long()


if __name__ == "__main__":
    main()
