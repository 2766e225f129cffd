"""The examples for proxies in docs/deploy, in the real servers, before a real Dominds: what people need comes through.

Skipped where a server is not installed (Debian: nginx-light, caddy).
"""

from __future__ import annotations

import json
import os
import shutil
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from websockets.sync.client import connect

from tests.e2e.steps import play
from tests.environment import free_port
from tests.shell import ROOT
from tests.stack import Stack, running_stack

pytestmark = [pytest.mark.long, pytest.mark.stack]
DEPLOY = ROOT / "docs" / "deploy"
PASSWORD = "behind-a-proxy-1"
# A word a fifth of a second: who holds words back shows it.
WORDS, DELAY = 10, 0.2
MB = 1024 * 1024
ROWS = """
from django.contrib.auth.models import User
from django.utils import timezone
from dialogs.models import LLM, Agent, Course, Dialog, Provider
provider = Provider.objects.create(name="scripted", kind="scripted", base_url="script.json")
llm = LLM.objects.create(provider=provider, model_id="tiny", context_length=100_000, context_length_source="admin")
agent = Agent.objects.create(name="Helper", slug="helper", llm=llm)
dialog = Dialog.objects.create(owner=User.objects.get(), agent=agent, llm=llm, active_at=timezone.now())
Course.objects.create(dialog=dialog, number=1)
print(dialog.pk)
"""


@dataclass(frozen=True, kw_only=True)
class Proxied:
    """A stack that was told that a proxy stands before it, the proxy's address, and a dialog of its admin's."""

    stack: Stack
    address: str
    dialog: str


def nginx(folder: Path, port: int, stack: Stack) -> tuple[list[str], dict[str, str]]:
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    subprocess.run([*made, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    site = (DEPLOY / "nginx.conf").read_text()
    for ours, here in {
        "listen 443": f"listen 127.0.0.1:{port}",
        "dominds.example": "localhost",
        "/etc/ssl/dominds/fullchain.pem": str(certificate),
        "/etc/ssl/dominds/privkey.pem": str(key),
        "http://127.0.0.1:8000": stack.url,
    }.items():
        assert ours in site
        site = site.replace(ours, here)
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    places = "".join(f"{kind}_temp_path {folder / kind};" for kind in kinds)
    user = "user root;" if os.geteuid() == 0 else ""
    (folder / "all.conf").write_text(
        f"daemon off; {user} pid {folder / 'pid'}; events {{}} http {{ access_log off; {places}\n{site}}}\n"
    )
    return ["nginx", "-p", str(folder), "-e", str(folder / "errors"), "-c", str(folder / "all.conf")], {}


def caddy(folder: Path, port: int, stack: Stack) -> tuple[list[str], dict[str, str]]:
    alone = f"{{\n\tadmin off\n\thttp_port {free_port()}\n\tskip_install_trust\n}}\n"
    (folder / "Caddyfile").write_text(alone + (DEPLOY / "Caddyfile").read_text())
    names = {"SITE_NAME": f"localhost:{port}", "SITE_UPSTREAM": stack.url.removeprefix("http://")}
    homes = {"XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    return ["caddy", "run", "--adapter", "caddyfile", "--config", str(folder / "Caddyfile")], {**names, **homes}


PROXIES: Mapping[str, Callable[[Path, int, Stack], tuple[list[str], dict[str, str]]]] = {
    "nginx": nginx,
    "caddy": caddy,
}


@pytest.fixture(scope="module", params=PROXIES)
def proxied(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxied]:
    if not shutil.which(request.param):
        pytest.skip(f"{request.param} is not installed")
    folder, port = tmp_path_factory.mktemp(request.param), free_port()
    address = f"https://localhost:{port}"
    told = {
        "DOMINDS_HTTPS": "yes",
        "DOMINDS_ALLOWED_HOSTS": "localhost",
        "DOMINDS_TRUSTED_ORIGINS": address,
        "DOMINDS_ADMIN_PASSWORD": PASSWORD,
    }
    with running_stack(folder / "data", "--no-demo", **told) as stack:
        command, environment = PROXIES[request.param](folder, port, stack)
        with (folder / "log").open("w") as log:
            process = subprocess.Popen(command, env={**os.environ, **environment}, stdout=log, stderr=log)
        try:
            stack.wait_until(lambda: answers(address), seconds=30)
            yield Proxied(stack=stack, address=address, dialog=stack.shell(ROWS).strip())
        finally:
            process.terminate()
            process.wait(20)


def answers(address: str) -> bool:
    try:
        return httpx.get(f"{address}/healthz", verify=False).text == "ok"
    except httpx.HTTPError:
        return False


@pytest.fixture
def person(proxied: Proxied) -> Iterator[httpx.Client]:
    """Signed in through the proxy, as a browser does: with an origin, and cookies for TLS alone."""
    address = proxied.address
    with httpx.Client(base_url=address, verify=False, follow_redirects=True, headers={"Origin": address}) as found:
        found.get("/login/")
        form = {"username": "admin", "password": PASSWORD, "csrfmiddlewaretoken": found.cookies["csrftoken"]}
        assert found.post("/login/", data=form).url.path == "/"
        yield found


def test_somebody_signs_in_with_cookies_for_tls_alone(person: httpx.Client) -> None:
    assert all(cookie.secure for cookie in person.cookies.jar)
    assert person.get("/").status_code == 200


def test_a_page_hears_what_is_new_over_a_websocket(proxied: Proxied, person: httpx.Client) -> None:
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    cookies = "; ".join(f"{cookie.name}={cookie.value}" for cookie in person.cookies.jar)

    with connect(
        f"wss{proxied.address.removeprefix('https')}/ws/dialogs/{proxied.dialog}/",
        ssl=trusting, origin=proxied.address, additional_headers={"Cookie": cookies},  # type: ignore[arg-type]
    ) as socket:  # fmt: skip
        first = socket.recv(timeout=20)

    assert first


def test_each_word_of_an_answer_is_passed_on_when_it_comes(proxied: Proxied) -> None:
    play(proxied.stack, {"text": [f"word{number} " for number in range(WORDS)], "delay": DELAY})
    key = proxied.stack.run_manage("apikey", "create", "laptop", "--user", "admin", "--quiet").stdout.strip()
    body = {"model": "scripted/tiny", "stream": True, "messages": [{"role": "user", "content": "Go"}]}
    came: list[float] = []

    with httpx.stream(
        "POST",
        f"{proxied.address}/v1/chat/completions",
        json=body,
        headers={"Authorization": f"Bearer {key}"},
        verify=False,
    ) as answer:
        for line in answer.iter_lines():
            if "word" in line and json.loads(line.removeprefix("data: ")):
                came.append(time.monotonic())

    assert len(came) == WORDS
    assert came[-1] - came[0] > WORDS * DELAY / 2


@pytest.mark.parametrize(("size_mb", "status"), [(30, 422), (70, 413)])
def test_a_dialog_file_passes_up_to_the_size_that_dominds_reads(
    person: httpx.Client, size_mb: int, status: int
) -> None:
    form = {"csrfmiddlewaretoken": person.cookies["csrftoken"]}
    try:
        answer = person.post("/dialogs/import/", data=form, files={"file": b" " * size_mb * MB}, timeout=60)
        assert answer.status_code == status
    except httpx.WriteError:
        # Refused by its length, and the connection closed, while it was still being sent.
        assert status == 413
