"""Every value of a file replaced by garbage of every type: refused, or imported as a dialog that works."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction

from dialogs.api.writes.api_keys import create_key
from dialogs.common.errors import DialogError
from dialogs.context.border import chat_request, read_context
from dialogs.models import LLM, Agent, Dialog
from dialogs.pages.reads.transcript import transcript
from dialogs.transcript.reads.path import course_branch
from dialogs.transfer import export_json, export_markdown, import_dialog
from dialogs.transfer.importing import read_file
from tests.client_dialogs import A_TOOL, ask, assistant, picture, result, user

GARBAGE: tuple[Any, ...] = (
    *(None, True, -1, 0, 2, 2**31 - 1, 2**63, 1.5, float("nan"), "", "x", "\ud800"),
    *([], [None], {}, {"x": 1}),
)
# Columns that these tests vouch for, beside what `test_bad_files.py` says of the others.
NEW = (
    *("work_language", "taskdoc", "courses", "reminders", "calls", "prompts", "runs", "texts"),
    *("marks", "compactions", "view_changes"),
)


def places(value: Any, way: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The ways to all values inside this one."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*way, key)
        yield from places(item, (*way, key))


def with_value(data: Any, way: tuple[str | int, ...], value: Any) -> Any:
    changed = copy.deepcopy(data)
    at = changed
    for step in way[:-1]:
        at = at[step]
    at[way[-1]] = value
    return changed


def is_refused(data: Any) -> bool:
    try:
        read_file(data)
    except DialogError:
        return True
    return False


@pytest.mark.parametrize("every", [pytest.param(17, id="some"), pytest.param(1, id="all", marks=pytest.mark.long)])
def test_garbage_is_refused_or_makes_a_dialog_that_works(every: int, working_dialog: Dialog, alice: User) -> None:
    data = json.loads(json.dumps(export_json(working_dialog)))
    ways = [way for name in NEW for way in places(data[name], (name,))] + [(name,) for name in NEW]
    pairs = [(way, value) for way in ways for value in GARBAGE][::every]
    tried = [with_value(data, way, value) for way, value in pairs]

    accepted = [file for file in tried if not is_refused(file)]

    assert len(tried) / 4 > len(accepted) > 0
    for file in accepted:
        assert_it_works(file, alice)


@pytest.mark.parametrize("every", [pytest.param(13, id="some"), pytest.param(1, id="all", marks=pytest.mark.long)])
def test_garbage_in_the_file_of_a_clients_dialog(every: int, alice: User, llm: LLM, agent: Agent) -> None:
    key, _secret = create_key(owner=alice, name="laptop")
    said = [user([{"type": "text", "text": "Hello"}, picture()], name="Bea"), assistant("", ("c1", "weather"))]
    data = json.loads(json.dumps(export_json(ask(key, llm, *said, result("c9", "Rain."), tools=(A_TOOL,)))))
    ways = [way for name in ("client", "messages", "calls") for way in places(data[name], (name,))]
    tried = [with_value(data, way, value) for way in ways for value in GARBAGE][::every]

    accepted = [file for file in tried if not is_refused(file)]

    assert len(tried) / 2 > len(accepted) > 0
    for file in accepted:
        assert_it_works(file, alice)


def assert_it_works(file: Any, owner: User) -> None:
    """It is stored, shown, exported, told, and sent to a model."""
    with transaction.atomic():
        dialog = Dialog.objects.get(pk=import_dialog(owner=owner, data=file).pk)
        assert transcript(dialog).rows
        json.dumps(export_json(dialog)).encode()
        export_markdown(dialog).encode()
        chat_request(read_context(dialog, course_branch(dialog.current_leaf)))
        transaction.set_rollback(True)
