"""Writes the sample conversations in dialogs/sample: `.venv/bin/python -m docs.sample_day`.

The words stand here. What each answer's request takes is measured: the demo model's own server is asked, so that the
meter of a sample shows what was reported and nothing that was made up. To be run again where the words change.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.stack import running_stack

HERE = Path(__file__).parent.parent / "dialogs" / "sample"
DAY = "2026-11-24T{}:00+00:00"
# When, who, what. A call is written as its name and arguments, what comes back from the tool stands below it.
Said = tuple[str, str, str]
ENGLISH: tuple[Said, ...] = (
    ("08:40", "user", "Good morning! Today the orders page gets faster. Never touch the payments tables. Be brief."),
    ("08:40", "call", 'explain {"page": "orders"}'),
    ("08:41", "tool", "Seq Scan on orders: 2,140,000 rows, 4.1 s"),
    ("08:41", "assistant", "It reads all 2,140,000 rows. An index on customer and date would serve it."),
    ("10:55", "user", "Good. Build it on staging, after 11:00."),
    ("11:00", "call", 'create_index {"on": "staging"}'),
    ("11:02", "tool", "orders_by_customer: built in 98 s"),
    ("11:02", "assistant", "orders_by_customer stands on staging: 4.1 s became 0.3 s."),
    ("12:10", "user", "Nice. I am off to lunch with Dana, noodles at the corner. What else is slow there?"),
    ("12:11", "assistant", "Enjoy the noodles! The invoice list: it loads 900 previews at once, 20 would do."),
    ("13:30", "user", "They were good. Previews later. The report goes to Dana on Friday at 16:00."),
    ("13:30", "assistant", "Noted: the report goes to Dana on Friday at 16:00."),
    ("15:05", "user", "Run the tests, please."),
    ("15:05", "call", 'run_tests {"of": "orders"}'),
    ("15:09", "tool", "214 passed, 1 failed: test_empty_export"),
    ("15:09", "assistant", "214 passed. test_empty_export failed: it wants a header."),
    ("16:20", "user", "I changed my mind: the report goes to Dana on Thursday at 10:00, not on Friday."),
    ("16:20", "assistant", "Thursday at 10:00 it is."),
)
CHINESE: tuple[Said, ...] = (
    ("08:40", "user", "早上好！今天让订单页变快。绝对不要动支付表。"),
    ("08:40", "call", 'explain {"page": "orders"}'),
    ("08:41", "tool", "全表扫描：214 万行，4.1 秒"),
    ("08:41", "assistant", "它读了全部行，需要一个索引。"),
    ("11:00", "user", "好，先在测试环境建。"),
    ("11:02", "assistant", "建好了：4.1 秒变成 0.3 秒。"),
    ("12:10", "user", "我和陈丹去吃面。还有什么慢？"),
    ("12:11", "assistant", "发票页一次加载 900 张预览，20 张就够。"),
    ("13:30", "user", "以后再说。报告周五 16:00 发给陈丹。"),
    ("13:30", "assistant", "记下了：周五 16:00 发给陈丹。"),
    ("16:20", "user", "我改主意了：报告不是周五 16:00，改为周四 10:00 发给陈丹。"),
    ("16:20", "assistant", "好，周四 10:00。"),
)
SAMPLES = {"en": ("A working day: the orders page", ENGLISH), "zh-hans": ("一天的工作：订单页", CHINESE)}


def lay_out(language: str) -> dict[str, Any]:
    """The sample as a dialog file, from a dialog that is made for it beside a running demo."""
    from django.contrib.auth.models import User
    from django.utils import translation

    from dialogs.models import Agent
    from dialogs.pages.writes import create_dialog
    from dialogs.transfer import export_json

    title, said = SAMPLES[language]
    with translation.override(language):
        dialog = create_dialog(owner=User.objects.get(username="admin"), agent=Agent.objects.get(is_demo=True))
    dialog.title, dialog.titled_by_person = title, True
    dialog.save()
    _say(dialog, said)
    return at_their_times(export_json(dialog), said)


def _say(dialog: Any, said: Sequence[Said]) -> None:
    from dialogs.models import ToolCall
    from dialogs.models.message import MessageOrigin, Role
    from dialogs.transcript.writes.dialog_row import add_message

    origins = {"user": MessageOrigin.TYPED, "tool": MessageOrigin.TOOL}
    for _when, who, words in said:
        usage = _measured(dialog, words) if who in ("assistant", "call") else None
        call = next(iter(ToolCall.objects.filter(message=dialog.current_leaf)), None)
        message = add_message(
            dialog,
            role=Role.ASSISTANT if who == "call" else Role(who),
            origin=origins.get(who, MessageOrigin.AGENT),
            content="" if who == "call" else words,
            parts={"tool_call_id": call.call_id} if who == "tool" and call else {},
            parent=dialog.current_leaf,
        )
        dialog.save()
        if who == "call":
            name, _space, arguments = words.partition(" ")
            asked = {"call_id": f"call_{message.seq}", "name": name, "arguments": arguments}
            ToolCall.objects.create(message=message, position=0, status="done", **asked)
        elif call:
            call.result_message = message
            call.save()
        if usage:
            _record(dialog, message, usage)


def _measured(dialog: Any, words: str) -> Any:
    """What the server reports of the request that this answers."""
    import httpx

    from dialogs.context.border import chat_request
    from dialogs.context.estimate import present_context
    from health.monitor.levels import Usage

    url = dialog.llm.provider.base_url
    sent = [{"role": one.role, "content": one.content} for one in chat_request(present_context(dialog)).messages]
    body = {"model": dialog.llm.model_id, "messages": sent, "max_tokens": 1}
    prompt = httpx.post(f"{url}/v1/chat/completions", json=body, timeout=120).json()["usage"]["prompt_tokens"]
    answer = len(httpx.post(f"{url}/tokenize", json={"content": words}).json()["tokens"])
    return Usage(prompt_tokens=prompt, completion_tokens=answer, total_tokens=prompt + answer)


def _record(dialog: Any, message: Any, usage: Any) -> None:
    from dataclasses import asdict

    from dialogs.llms.reads import configured
    from health.services import record_reading
    from tests.builders import a_generation

    counted = {name: count for name, count in asdict(usage).items() if name.endswith("_tokens")}
    reason = "stop" if message.content else "tool_calls"
    made = a_generation(
        dialog,
        turn=message.turn,
        prompt_leaf=message.parent,
        message=message,
        status="finished",
        finish_reason=reason,
        **counted,
    )
    source = dialog.llm.context_length_source
    record_reading(generation_id=made.pk, usage=usage, configured=configured(dialog.llm), window_source=source)


def at_their_times(file: dict[str, Any], said: Sequence[Said]) -> dict[str, Any]:
    """Everything at the time of its message, the file itself at the last one's."""
    times = {number: DAY.format(when) for number, (when, _who, _words) in enumerate(said, start=1)}
    last = times[len(said)]

    def at(value: Any, when: str) -> Any:
        if isinstance(value, list):
            return [at(one, when) for one in value]
        if not isinstance(value, dict):
            return value
        here = times.get(value.get("seq") or value.get("message") or 0, when)
        return {name: here if _is_moment(name, one) else at(one, here) for name, one in value.items()}

    return {**at(file, last), "created_at": times[1]}


def _is_moment(name: str, value: Any) -> bool:
    return name.endswith("_at") and isinstance(value, str) and bool(datetime.fromisoformat(value))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, running_stack(Path(folder) / "data") as stack:
        for language in SAMPLES:
            made = stack.shell(
                f"import json\nfrom docs.sample_day import lay_out\nprint(json.dumps(lay_out({language!r})))"
            )
            file = json.loads(made)
            (HERE / f"{language}.json").write_text(json.dumps(file, ensure_ascii=False, indent=1) + "\n")


if __name__ == "__main__":
    main()
