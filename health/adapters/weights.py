"""Model files that come inside a package: found by path, checked, never downloaded. The package's code is not run."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path


class Unavailable(Exception):
    """A model is not installed, or its files are not the ones we know."""


def folder(package: str) -> Path:
    """Where a package is installed. Raises Unavailable if it is not."""
    spec = find_spec(package)
    places = list(spec.submodule_search_locations or ()) if spec else []
    if not places:
        raise Unavailable(
            f"{package} is not installed: run `make install` without EMBEDDINGS=0, or install dominds[embeddings]."
        )
    return Path(places[0])


def check(path: Path, sha256: Mapping[str, str]) -> None:
    """Raise Unavailable, naming the file, if one differs from the file that was tried."""
    for name, expected in sha256.items():
        try:
            digest = hashlib.sha256((path / name).read_bytes()).hexdigest()
        except OSError as error:
            raise Unavailable(f"{path / name} cannot be read: {error.strerror}.") from error
        if digest != expected:
            raise Unavailable(f"{path / name} is not the file we know: its sha256 is {digest}.")


def both_ends(text: str, most: int) -> str:
    """The text, or its first and last parts if it is longer than `most` characters; valid Unicode in any case."""
    half = most // 2
    cut = text if len(text) <= most else f"{text[:half]} {text[-half:]}"
    return cut.encode(errors="replace").decode()
