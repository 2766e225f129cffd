"""The variants of a what-if: limits and chains, those in force first, then those a person chose or typed. And what its
page shows: the agents to choose from, and its rows compared with the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from itertools import product
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from dialogs.common.errors import DialogError
from dialogs.llms.guard import LMSTUDIO_CHAIN, active_guard, by_limit, config_of, room_of
from dialogs.models import Agent, Dialog
from health.compaction.compact import DEFAULT_CHAIN
from health.compaction.config import ContextConfig, How, chain_for
from health.compaction.strategies import REGISTRY
from health.models import WhatIf

MOST_LIMITS, MOST_CHAINS, MOST_DIALOGS = 6, 4, 10
# Larger than any context: without a guard everything is sent.
NO_LIMIT = 2**31 - 1
LIMITS: Mapping[str, Promise] = {
    "now": gettext_lazy("as now"),
    "more": gettext_lazy("a quarter more"),
    "much_more": gettext_lazy("half as much again"),
    "window": gettext_lazy("the whole window"),
}
SHARES = {"now": 1.0, "more": 1.25, "much_more": 1.5}
CHAINS: Mapping[str, Promise] = {
    "now": gettext_lazy("as now"),
    "recent": gettext_lazy("the recent first"),
    "chunks": gettext_lazy("each kind of content first"),
    "passages": gettext_lazy("passages only"),
    "window": gettext_lazy("a window of recent messages"),
}
ORDERS: Mapping[str, Sequence[str]] = {
    "recent": (*dict.fromkeys(("prioritize_recent", *DEFAULT_CHAIN)), "hybrid"),
    "chunks": (*dict.fromkeys(("content_type_chunking", *DEFAULT_CHAIN)), "hybrid"),
    "passages": (),
    "window": ("sliding_window",),
}
# Left out of chains: no model is asked here. The next strategy of the chain takes its place.
NEEDS_A_MODEL = "prune_with_agent"
Chain = tuple[str, ...]
CompleteChain = Callable[[Sequence[str]], Chain]


class InvalidVariants(DialogError):
    """What was typed cannot be tried. `str(error)` is a translated sentence."""


@dataclass(frozen=True, kw_only=True)
class VariantChoice:
    """Names from LIMITS and CHAINS, and what was typed beside them."""

    limits: Sequence[str] = ("now", "more", "much_more")
    other_limits: str = ""
    chains: Sequence[str] = ("now", "recent")
    other_chain: str = ""


@dataclass(frozen=True)
class Variant:
    limit: int
    chain: Chain


@dataclass(frozen=True, kw_only=True)
class InForce:
    """`variant` holds for the agent now; `limit` would hold if it were guarded. No limit may exceed `cap`; None: window
    unknown."""

    variant: Variant
    limit: int
    cap: int | None


def in_force(agent: Agent, config: ContextConfig) -> InForce:
    one = Dialog(agent=agent, llm=agent.llm)
    guard, configured = active_guard(one, config), by_limit(one, config)
    chain = guard.chain if guard else configured.chain
    now = Variant(guard.limit if guard else NO_LIMIT, _without_model(chain))
    room = room_of(one)
    # Where the reserve for the answer counts as used, the limit includes it.
    cap = room + (guard.reserve if guard else 0) if room else None
    return InForce(variant=now, limit=guard.limit if guard else configured.limit, cap=cap)


def variants(asked: VariantChoice, agent: Agent) -> list[Variant]:
    """What is in force, then every limit with every chain. Raises InvalidVariants."""
    config = config_of(Dialog(agent=agent, llm=agent.llm))
    now = in_force(agent, config)
    complete = partial(_complete_chain, config)
    limits = dict.fromkeys((*_named_limits(asked.limits, now), *_typed_limits(asked.other_limits, config, now)))
    chains = dict.fromkeys((*_named_chains(asked.chains, now, complete), *_typed_chain(asked.other_chain, complete)))
    if not limits or not chains:
        raise InvalidVariants((not limits and left_out(asked, agent)) or _("Choose at least one limit and one chain."))
    if len(limits) > MOST_LIMITS or len(chains) > MOST_CHAINS:
        most = {"limits": MOST_LIMITS, "chains": MOST_CHAINS}
        raise InvalidVariants(_("At most %(limits)s limits and %(chains)s chains at once.") % most)
    every = (Variant(limit, chain) for chain, limit in product(chains, sorted(limits)) if limit < NO_LIMIT)
    return list(dict.fromkeys((now.variant, *every)))


def left_out(asked: VariantChoice, agent: Agent) -> str:
    """A sentence about chosen limits that cannot be tried as named; empty where all can."""
    now = in_force(agent, config_of(Dialog(agent=agent, llm=agent.llm)))
    if now.cap is None:
        return _("The LLM’s window is unknown, so no limit is the whole of it.") if "window" in asked.limits else ""
    above = [name for name in asked.limits if name != "now" and now.limit * SHARES.get(name, 0) > now.cap]
    if not above:
        return ""
    names = ", ".join(f"“{LIMITS[name]}”" for name in above)
    return _("The window has no room for %(names)s: tried with %(most)s tokens.") % {
        "names": names,
        "most": f"{now.cap:,}",
    }


def _named_limits(names: Iterable[str], now: InForce) -> Iterable[int]:
    """None is above the cap. "As now" stays without a limit where there is no guard."""
    for name in names:
        if name == "window" and now.cap:
            yield now.cap
        elif name == "now":
            yield now.variant.limit
        elif name in SHARES:
            limit = round(now.limit * SHARES[name])
            yield min(limit, now.cap) if now.cap else limit


def _typed_limits(text: str, config: ContextConfig, now: InForce) -> Iterable[int]:
    for word in text.replace("，", ",").replace(";", ",").split(","):
        if not word.strip():
            continue
        digits = word.strip()
        limit = int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 10 else 0
        if limit < config.min_limit or (now.cap and limit > now.cap):
            most = f"{now.cap:,}" if now.cap else "∞"
            numbers = {"limit": word.strip(), "least": f"{config.min_limit:,}", "most": most}
            raise InvalidVariants(_("“%(limit)s” is no limit from %(least)s to %(most)s tokens.") % numbers)
        yield limit


def _named_chains(names: Iterable[str], now: InForce, complete: CompleteChain) -> Iterable[Chain]:
    for name in names:
        if name == "now":
            yield now.variant.chain
        elif name in ORDERS:
            yield complete(ORDERS[name])


def _typed_chain(text: str, complete: CompleteChain) -> Iterable[Chain]:
    names = [name.strip() for name in text.replace("，", ",").split(",") if name.strip()]
    unknown = [name for name in names if name not in REGISTRY]
    if unknown:
        raise InvalidVariants(_("There is no strategy “%(name)s”.") % {"name": unknown[0]})
    if names:
        yield _without_model(complete(names))


def _complete_chain(config: ContextConfig, order: Sequence[str]) -> Chain:
    """The chain that runs with this order: `chain_for` puts strategies before and behind it."""
    return chain_for(replace(config, how=How.CHAIN, chain_order=tuple(order)))


def _without_model(chain: Iterable[str]) -> Chain:
    return tuple(name for name in chain if name != NEEDS_A_MODEL) or LMSTUDIO_CHAIN[1:]


@dataclass(frozen=True, kw_only=True)
class ComparisonRow:
    """One limit with one chain. Everything is estimated; `share` is of the tokens that are sent as it is now.

    `limit` None: nobody guards the agent, and everything is sent. `cost` None: an LLM has no known price. `share` None:
    the row as it is now holds another number of dialogs. `dialogs` is told only where rows differ in it.
    """

    limit: int | None
    chain: tuple[str, ...]
    numbers: dict[str, int]
    dialogs: int | None
    share: float | None
    cost: Decimal | None
    is_now: bool


def dialogs_of(owner: User, agent: Agent) -> QuerySet[Dialog, UUID]:
    """A person's own dialogs with an agent in which something was said, the newest first."""
    found = Dialog.objects.filter(owner=owner, agent=agent, trashed_at=None, current_leaf__isnull=False)
    return found.order_by("-active_at").values_list("pk", flat=True)


def agents_of(owner: User) -> QuerySet[Agent]:
    """Agents that this person has dialogs with."""
    said = Dialog.objects.filter(owner=owner, trashed_at=None, current_leaf__isnull=False)
    return Agent.objects.filter(pk__in=said.values("agent")).select_related("llm__provider")


def what_if_of(owner: User, what_if_id: int) -> WhatIf | None:
    return WhatIf.objects.select_related("agent__llm__provider").filter(owner=owner, pk=what_if_id).first()


def rows_of(what_if: WhatIf, *, no_limit: int) -> Iterator[ComparisonRow]:
    are_uneven = len({row.get("dialogs", 0) for row in what_if.rows}) > 1
    for row in what_if.rows:
        yield _row(row, now=what_if.rows[0], are_uneven=are_uneven, no_limit=no_limit)


def _row(row: dict[str, Any], *, now: dict[str, Any], are_uneven: bool, no_limit: int) -> ComparisonRow:
    cost = row.get("cost")
    is_comparable = bool(now.get("tokens_sent")) and row.get("dialogs") == now.get("dialogs")
    return ComparisonRow(
        limit=row["limit"] if row["limit"] < no_limit else None,
        chain=tuple(row["chain"]),
        numbers={name: value for name, value in row.items() if isinstance(value, int)},
        dialogs=row.get("dialogs", 0) if are_uneven else None,
        share=row["tokens_sent"] / now["tokens_sent"] if is_comparable else None,
        cost=None if cost is None or row.get("unpriced") else Decimal(cost),
        is_now=row is now,
    )
