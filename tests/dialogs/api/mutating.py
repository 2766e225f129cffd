"""Valid bodies made wrong at random: other types, garbage, broken JSON, broken text. The same seed, the same bodies."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from tests.dialogs.api.conftest import a_tool, assistant, user
from tests.dialogs.transfer.test_garbage import places, with_value

PIXEL = "data:image/png;base64," + "iVBORw0KGgo" * 40
CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Ulm"}'}}
HISTORY = [user("Hello"), assistant("Hi."), user("Weather in Ulm?")]
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "rain"}
PARTS = [{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": PIXEL, "detail": "low"}}]
FORMAT = {"type": "json_schema", "json_schema": {"name": "city", "schema": {"type": "object"}}}
BODIES: tuple[dict[str, Any], ...] = (
    {"messages": [{"role": "system", "content": "Be brief.", "name": "boss"}, *HISTORY], "user": "u1", "seed": 7},
    {"messages": [*HISTORY, assistant("", tool_calls=[CALL]), RESULT], "tools": [a_tool("weather")], "n": 1},
    {"messages": [user("Hello"), {"role": "user", "content": PARTS}], "max_tokens": 50, "stop": ["\n"]},
    {"messages": [*HISTORY], "stream": True, "stream_options": {"include_usage": True}, "temperature": 0.5, "top_p": 1},
    {"messages": [*HISTORY], "response_format": FORMAT, "metadata": {"a": "b"}, "logit_bias": {"9": 1}},
)  # fmt: skip
MARK = "put something else here"
# As JSON text: some of these are none.
FRAGMENTS = (
    *("null", "true", "-1", "0", "1.5", "2147483648", "9223372036854775808", "9" * 5000, "1e999", "-1e-999"),
    *("NaN", "-Infinity", '""', '"x"', '"\\u0000"', '"\\ud800"', '"\\udc00\\ud800"', '"\U0001f9e0"', '"\\uffff"'),
    *("[]", "[null]", "[[]]", "{}", '{"x": 1}', '{"": {"": null}}', '{"\\u0000": "\\u0000"}', '{"\\ud800": 1}'),
    *("[" * 150 + "]" * 150, "[" * 20_000 + "]" * 20_000, '{"a":' * 180 + "1" + "}" * 180, '"' + "y" * 200_000 + '"'),
    *("[" + "0," * 20_000 + "0]", '{"type": "text", "text": "x"}', '[{"role": "user", "content": "x"}]'),
    *('{"role": "tool", "tool_call_id": "c9", "content": "x"}', '[{"type": "file", "file": {"file_id": NaN}}]'),
    *("undefined", "'x'", "0x10", "01", '"\t"', '"unended', '"### Task:\\nA title"', '"data:image/png;base64,%%%"'),
)
SHORT = [fragment for fragment in FRAGMENTS if len(fragment) < 1000]
NOTICES = ("event", "reasoning", "content", "off", *[""] * 10, "loud", "\xff")


def some_body(chance: Random, model: str) -> bytes:
    body: Any = {"model": model, **chance.choice(BODIES)}
    for _time in range(chance.choice((1, 1, 1, 1, 2, 3))):
        body = chance.choice((_replaced, _replaced, _dropped, _doubled, _added))(body, chance)
    text = _with_fragments(json.dumps(body), chance)
    return chance.choice((_as_it_is,) * 9 + (_cut, _flipped, _recoded, _twice_a_key))(text, chance)


def _replaced(body: Any, chance: Random) -> Any:
    return with_value(body, chance.choice(list(places(body))), MARK)


def _dropped(body: Any, chance: Random) -> Any:
    way = chance.choice(list(places(body)))
    copied = with_value(body, way, MARK)
    at = copied
    for step in way[:-1]:
        at = at[step]
    del at[way[-1]]
    return copied if copied else body


def _doubled(body: Any, chance: Random) -> Any:
    """A list with the same things many times."""
    lists = [(way, value) for way in places(body) if isinstance(value := _at(body, way), list)]
    way, value = chance.choice(lists) if lists else (("messages",), [])
    return with_value(body, way, value * chance.choice((0, 2, 300)))


def _added(body: Any, chance: Random) -> Any:
    names = ("functions", "function_call", "event", "store", "metadata", "audio", "x" * 300, "", "__class__", "\0")
    return {**body, chance.choice(names): MARK}


def _at(body: Any, way: tuple[str | int, ...]) -> Any:
    for step in way:
        body = body[step]
    return body


def _with_fragments(text: str, chance: Random) -> str:
    first, *rest = text.split(f'"{MARK}"')
    return first + "".join(chance.choice(FRAGMENTS if len(rest) < 4 else SHORT) + more for more in rest)


def _as_it_is(text: str, _chance: Random) -> bytes:
    return text.encode()


def _cut(text: str, chance: Random) -> bytes:
    return text.encode()[: chance.randrange(len(text))]


def _flipped(text: str, chance: Random) -> bytes:
    raw = bytearray(text.encode())
    for _time in range(chance.randint(1, 5)):
        raw[chance.randrange(len(raw))] = chance.randrange(256)
    return bytes(raw)


def _recoded(text: str, chance: Random) -> bytes:
    return text.encode(chance.choice(("utf-16", "utf-32", "utf-8-sig", "utf-7")), "replace")


def _twice_a_key(text: str, chance: Random) -> bytes:
    key = chance.choice(("model", "messages", "stream", "n", "tools"))
    return f'{text.rstrip()[:-1]}, "{key}": {chance.choice(FRAGMENTS)}}}'.encode()
