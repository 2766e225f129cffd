"""Thousands of hostile requests to every page and action, by the owner of a dialog and by somebody else: none breaks
anything, none hangs, and nobody reads what is another's. What `/v1` is sent is in `tests/dialogs/api/test_mutated.py`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import transaction
from django.http import HttpResponse
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from dialogs.models import Dialog, Generation, Message
from dialogs.turns.writes.messages import post_message
from tests.builders import an_answer
from tests.hanging import portions

CANARY = "the-canary-that-only-alice-knows"
# Of the processor, so that a busy machine fails nobody.
MOST_SECONDS = 2.0
METHODS = ("get",) * 6 + ("post",) * 8 + ("head", "put", "delete", "patch", "options")
NAMES = re.findall(
    r"\S+",
    """content text line title next agent llm q page all before after version lang language theme file name scope models
    notices expires_at requests_per_minute priority pinned done goal generations taskdoc limit how yaml kind base_url
    api_key model to from course branch leaf message answer option value show detail compaction own_tools what order
    chain run rule worded until seconds auto_hide_seconds form-TOTAL_FORMS password username csrfmiddlewaretoken""",
)
VALUES: tuple[str, ...] = (
    *("", " ", "0", "-1", "1", "2147483648", "9" * 400, "1e999", "NaN", "null", "true", "on", "[]", "{}", "\0", "\x7f"),
    *("中" * 50, "\u202eevil", "\ufeff", "a\r\nSet-Cookie: x=1", "00000000-0000-0000-0000-000000000000", "[" * 5_000),
    *(
        "../../etc/passwd",
        "//evil.example",
        "javascript:alert(1)",
        "https://evil.example/",
        "<script>alert(1)</script>",
    ),
    *("' OR 1=1 --", '"; DROP TABLE dialogs_dialog; --', "%s%n%x", "{{7*7}}", "{% debug %}", "NEAR(a b)", '"', "*"),
    *("a: [", "- &a [*a]", "!!python/object:os.system x", "x" * 5_000, " " * 20_000 + "x", "*" * 20_000, "\n" * 20_000),
)
HEADERS: tuple[dict[str, str], ...] = (
    *({},) * 6,
    *({"HX-Request": "true"}, {"HX-Request": "true", "HX-Target": "\x01"}, {"Accept-Language": "x" * 3_000}),
    *({"Host": "evil.example"}, {"Cookie": "django_language=../../x; theme=<b>"}, {"Content-Type": "application/json"}),
    *({"X-Forwarded-For": "1, 2, 3"}, {"Referer": "javascript:1"}, {"Accept": "application/octet-stream"}),
)


def routes(resolver: Any, before: str = "") -> Iterator[str]:
    """Where everything is, but for the admin, which is Django's."""
    for pattern in resolver.url_patterns:
        here = before + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            if not here.startswith("admin/"):
                yield from routes(pattern, here)
        elif isinstance(pattern, URLPattern):
            yield here


class Hostile:
    def __init__(self, dialog: Dialog, chance: Random) -> None:
        self.chance, self.ways = chance, sorted(routes(get_resolver()))
        self.ids = {"dialog_id": str(dialog.pk)}
        self.numbers = [str(pk) for table in (Message, Generation) for pk in table.objects.values_list("pk", flat=True)]

    def path(self) -> str:
        return "/" + re.sub(r"<(?:(\w+):)?(\w+)>", self._part, self.chance.choice(self.ways))

    def _part(self, found: re.Match[str]) -> str:
        kind = found[1]
        if kind == "uuid":
            return self.ids["dialog_id"] if self.chance.random() < 0.9 else "00000000-0000-0000-0000-000000000000"
        if kind == "number":
            return self.chance.choice((*self.numbers, "0", "1", "99", str(2**31), str(2**63), "9" * 30))
        return self.chance.choice(("x", "%00", "..", "a%2Fb", "%F0%9F%A7%A0", "x" * 300, "typed", "compact"))

    def fields(self) -> dict[str, Any]:
        some = {self.chance.choice(NAMES): self.chance.choice(VALUES) for _time in range(self.chance.randrange(5))}
        if self.chance.random() < 0.1:
            some["file"] = SimpleUploadedFile("x.json", self.chance.choice(VALUES).encode())
        return some

    def ask(self, client: Client) -> tuple[str, HttpResponse, float]:
        method, path, sent = self.chance.choice(METHODS), self.path(), self.fields()
        headers = self.chance.choice(HEADERS)
        if method in {"put", "patch", "delete"}:
            sent = {}
        begun = time.process_time()
        answer: Any = getattr(client, method)(path, sent, headers=headers) if method != "put" else client.put(path)
        return f"{method} {path} {str(sent)[:300]} {headers}", answer, time.process_time() - begun


@pytest.mark.parametrize(("count", "seed"), portions(120, 10_000))
def test_no_request_breaks_hangs_or_reads_what_is_anothers(
    count: int, seed: int, alice: User, bob: User, dialog: Dialog, settings: Any
) -> None:
    post_message(dialog=dialog, content=CANARY)
    an_answer(dialog, CANARY)
    Dialog.objects.update(title=CANARY)
    hostile = Hostile(dialog, Random(seed))
    # What a page shows, and what was done, is taken back each time: every request meets the same dialog.
    for number in range(count):
        owner = number % 2 == 0
        client = Client(raise_request_exception=False)
        client.force_login(alice if owner else bob)
        with transaction.atomic():
            asked, answer, seconds = hostile.ask(client)
            transaction.set_rollback(True)

        assert answer.status_code < 500, asked
        assert seconds < MOST_SECONDS, (seconds, asked)
        body = b"".join(answer.streaming_content) if answer.streaming else answer.content  # type: ignore[attr-defined]
        assert owner or CANARY.encode() not in body, asked


@pytest.mark.parametrize("number", [2**63, 2**64, 10**30])
def test_a_number_that_no_row_can_have_is_nowhere(number: int, alice: User, dialog: Dialog) -> None:
    client = Client(raise_request_exception=False)
    client.force_login(alice)
    numbered = [way.replace("<uuid:dialog_id>", str(dialog.pk)) for way in routes(get_resolver()) if "<number:" in way]

    found = {way: client.post("/" + re.sub(r"<number:\w+>", str(number), way)).status_code for way in numbered}

    assert len(found) > 30
    assert set(found.values()) == {404}, found


def test_every_page_and_action_is_among_them() -> None:
    found = list(routes(get_resolver()))

    assert len(found) > 80
    assert {"dialogs/<uuid:dialog_id>/send/", "login/", "healthz"} <= set(found)
