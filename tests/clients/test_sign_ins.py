"""An office that signs in at the same moment: a real `up`, real browsers' requests, the real hash."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.clients.conftest import Served
from tests.stack import Stack

pytestmark = [pytest.mark.stack, pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="asks Linux")]
PEOPLE = 6
ONE_HASH_MB = 105
PASSWORD = "an-office-s-pass-1"
MAKE_PEOPLE = f"""
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
password = make_password("{PASSWORD}")
User.objects.bulk_create([User(username=f"person{{at}}", password=password) for at in range({PEOPLE})])
"""
TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')


@pytest.fixture
def stack(served: Served) -> Stack:
    return served.stack


@pytest.fixture
def office(stack: Stack) -> Iterator[list[tuple[httpx.Client, dict[str, str]]]]:
    """Each at their sign-in page, their name and password typed."""
    stack.shell(MAKE_PEOPLE)
    browsers = [httpx.Client(base_url=stack.url, timeout=120) for _ in range(PEOPLE)]
    tokens = [TOKEN.findall(browser.get("/login/").text)[0] for browser in browsers]
    yield [
        (browser, {"csrfmiddlewaretoken": token, "username": f"person{at}", "password": PASSWORD})
        for at, (browser, token) in enumerate(zip(browsers, tokens, strict=True))
    ]
    for browser in browsers:
        browser.close()


def memory_mb(pid: int, which: str) -> float:
    return int(Path(f"/proc/{pid}/status").read_text().partition(f"{which}:")[2].split()[0]) / 1000


def test_many_sign_ins_take_the_memory_of_one_and_a_page_does_not_wait_for_them(
    stack: Stack, office: list[tuple[httpx.Client, dict[str, str]]]
) -> None:
    web = stack.pid("web")
    with httpx.Client(base_url=stack.url, timeout=60, cookies={"sessionid": stack.session_of("admin")}) as admin:
        admin.get("/").raise_for_status()
        Path(f"/proc/{web}/clear_refs").write_text("5")
        before = memory_mb(web, "VmRSS")
        with ThreadPoolExecutor(PEOPLE) as pool:
            signing_in = [pool.submit(browser.post, "/login/", data=fields) for browser, fields in office]
            admin.get("/").raise_for_status()
            still_waiting = [one for one in signing_in if not one.done()]

    assert [one.result().status_code for one in signing_in] == [302] * PEOPLE
    assert still_waiting
    assert memory_mb(web, "VmHWM") < before + 2 * ONE_HASH_MB
