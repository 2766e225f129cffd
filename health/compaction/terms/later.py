"""A sequence that is found when somebody looks: what few runs are asked for costs the others nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar, overload

T = TypeVar("T")


class Later(Sequence[T], Generic[T]):
    """Equal to the tuple that `find` returns, which is called once at most."""

    def __init__(self, find: Callable[[], tuple[T, ...]]) -> None:
        self._find = find
        self._kept: tuple[T, ...] | None = None

    @property
    def _found(self) -> tuple[T, ...]:
        # Without the lock of `functools.cached_property`: in Python 3.11 it is one for all objects.
        if self._kept is None:
            self._kept = self._find()
        return self._kept

    @overload
    def __getitem__(self, at: int) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[T, ...]: ...
    def __getitem__(self, at: int | slice) -> T | tuple[T, ...]:
        return self._found[at]

    def __len__(self) -> int:
        return len(self._found)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._found == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._found)
