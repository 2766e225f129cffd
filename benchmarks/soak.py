"""A thousand turns with tools and images, at a server that cuts prompts silently: `python -m benchmarks.soak`.

The official client, `/v1` over a socket, a window of 8,192 tokens, nothing configured: once at a server that lists its
window, where nothing may be cut, and once at one that does not, where nothing may be cut once a cut was found out.
Exits with 1 where a turn failed or a prompt was cut that must not be.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from benchmarks.in_process import prepare

if TYPE_CHECKING:
    from tests.overflow.soak import Soaked

TURNS = 1_000
AT_THE_ENDS = 100


def soaked(turns: int, *, listed: bool) -> Soaked:
    from django.contrib.auth.models import User

    from tests.overflow.house import house
    from tests.overflow.soak import soak, way
    from tests.standins.compatible import CompatibleStandin

    owner = User.objects.create_user(f"bench-{listed}")
    with house(
        CompatibleStandin(**way(listed=listed)), owner, name=f"house-{'listed' if listed else 'silent'}"
    ) as home:
        found = soak(home, turns)
        table(found, turns, listed=listed)
        return found


def table(found: Soaked, turns: int, *, listed: bool) -> None:
    ends = min(AT_THE_ENDS, turns // 2)
    first, last = found.median_ms(1, ends), found.median_ms(turns - ends + 1, turns)
    hundreds = [found.median_ms(at, at + 99)[1] for at in range(1, turns - 98, 100)]
    sizes = [one.size for one in found.home.standin.seen]
    print(f"\n{turns:,} turns, the window is {'listed' if listed else 'not listed'}")
    print(f"requests {len(sizes):,}, the largest {max(sizes):,} tokens; compactions {found.home.compactions():,}")
    print(f"turns that failed: {len(found.failed)} {list(found.failed.items())[:3] or ''}")
    print(f"prompts that were cut: {len(found.cuts)} {found.cuts[:8]}; known at {found.confirmed_at or 'no'} request")
    print(f"cut after that: {len(found.late_cuts)}; no valid chat: {len(found.home.standin.invalid)}")
    late = f"{turns - ends + 1}-{turns}"
    for what, early_ms, late_ms in zip(("a turn", "its computing"), first, last, strict=True):
        ratio = f"{late_ms / early_ms:.2f}x"
        print(f"median of {what}: {early_ms:.0f} ms in 1-{ends}, {late_ms:.0f} ms in {late}: {ratio}", flush=True)
    print(f"its computing in each hundred turns: {', '.join(f'{one:.0f}' for one in hundreds)} ms", flush=True)


def holds(found: Soaked, *, listed: bool) -> bool:
    cut = found.cuts if listed or found.confirmed_at is None else found.late_cuts
    return not (found.failed or cut or found.home.standin.invalid)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--only", choices=("listed", "silent"))
    given = parser.parse_args()
    prepare()
    ways = [listed for listed, name in ((True, "listed"), (False, "silent")) if given.only in (None, name)]
    ended = [holds(soaked(given.turns, listed=listed), listed=listed) for listed in ways]
    sys.exit(not all(ended))


if __name__ == "__main__":
    main()
