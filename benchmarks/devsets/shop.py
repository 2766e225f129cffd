"""Customer service of a shop, over tables that really answer: near-miss orders, many variants, one of them right.

The customer wants several things one after another, states conditions in passing, and changes their mind; the
last wish is still open when the conversation is cut.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from typing import Any

from benchmarks.devsets.case import Case, Part, Transcript, stated
from benchmarks.devsets.grammar import Bank, Deck, Draw, bank

Row = dict[str, Any]


@dataclass
class _Shop:
    """Products with variants, users, orders: made once, then read by the agent's calls."""

    rng: random.Random
    words: Bank
    products: dict[str, Row] = field(default_factory=dict)
    users: dict[str, Row] = field(default_factory=dict)
    orders: dict[str, Row] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, options in self.words["products"].items():
            self._product(name, options)
        self.customer = self._user("")
        for _ in range(3):
            self._user(self.customer["name"]["last_name"])
        for _ in range(6):
            self._user("")

    def _product(self, name: str, options: dict[str, str]) -> None:
        rng, base = self.rng, self.rng.randrange(20, 300)
        variants = {}
        for _ in range(rng.randrange(8, 16)):
            item = str(rng.randrange(10**9, 10**10))
            chosen = {option: rng.choice(values.split("; ")) for option, values in options.items()}
            price = round(base * rng.uniform(0.8, 1.3), 2)
            variants[item] = {"item_id": item, "options": chosen, "available": rng.random() < 0.7, "price": price}
        number = str(rng.randrange(10**9, 10**10))
        self.products[name] = {"name": name, "product_id": number, "variants": variants}

    def _user(self, last_name: str) -> Row:
        """A user with orders whose numbers differ from each other by one exchanged pair of digits."""
        draw = Draw(self.rng, self.words["slots"])
        first, last = draw.say("{first}"), last_name or draw.say("{last}")
        user_id = f"{first}_{last}_{self.rng.randrange(1000, 9999)}".lower()
        seed = str(self.rng.randrange(10**6, 10**7))
        ids = {seed}
        while len(ids) < 6:
            ids |= {_exchanged(seed, self.rng), str(self.rng.randrange(10**6, 10**7))}
        cards = {
            f"{kind}_{self.rng.randrange(10**6, 10**7)}": {
                "source": kind,
                "last_four": str(self.rng.randrange(1000, 9999)),
            }
            for kind in self.rng.sample(["credit_card", "gift_card", "paypal", "debit_card"], 3)
        }
        user = {
            "user_id": user_id,
            "name": {"first_name": first, "last_name": last},
            "address": {
                "address1": draw.say("#10-990# {street}"),
                "city": draw.say("{town}"),
                "zip": draw.say("#10000-99999#"),
            },
            "email": f"{first}.{last}{self.rng.randrange(10, 99)}@example.com".lower(),
            "payment_methods": cards,
            "orders": [f"#W{number}" for number in sorted(ids)],
        }
        self.users[user_id] = user
        for order in user["orders"]:
            self.orders[order] = self._order(order, user)
        return user

    def _order(self, order_id: str, user: Row) -> Row:
        items = []
        for name in self.rng.sample(sorted(self.products), self.rng.randrange(2, 5)):
            variant = self.rng.choice(list(self.products[name]["variants"].values()))
            product_id = self.products[name]["product_id"]
            items.append(
                {"name": name, "product_id": product_id} | {k: variant[k] for k in ("item_id", "price", "options")}
            )
        tracking = str(self.rng.randrange(10**11, 10**12))
        return {
            "order_id": order_id,
            "user_id": user["user_id"],
            "address": user["address"],
            "items": items,
            "fulfillments": [{"tracking_id": [tracking], "item_ids": [item["item_id"] for item in items]}],
            "status": self.rng.choice(["pending", "delivered", "delivered", "processed"]),
            "payment_history": [
                {
                    "transaction_type": "payment",
                    "amount": round(sum(item["price"] for item in items), 2),
                    "payment_method_id": self.rng.choice(list(user["payment_methods"])),
                }
            ],
        }


def _exchanged(number: str, rng: random.Random) -> str:
    at = rng.randrange(1, len(number) - 1)
    return number[:at] + number[at + 1] + number[at] + number[at + 2 :]


class _Desk:
    """The conversation: what the customer says, what the agent looks up and does."""

    def __init__(self, rng: random.Random, words: Bank) -> None:
        self.rng, self.words = rng, words
        self.shop = _Shop(rng, words)
        self.transcript = Transcript()
        self.lines = {name: Deck(rng, lines) for name, lines in words["lines"].items()}
        self.spiel = Deck(rng, words["spiel"])

    def say(self, role: str, line: str, **values: str) -> tuple[Part, ...]:
        text = Draw(self.rng, self.words["slots"], **values).say(self.lines[line].deal())
        if role == "assistant" and self.rng.random() < 0.4:
            text += "\n\n" + Draw(self.rng, {}).say(self.spiel.deal())
        return self.transcript.say(role, text)

    def ask(self, name: str, arguments: Row, answer: Any) -> int:
        return self.transcript.result(self.transcript.call(name, arguments), json.dumps(answer))

    def identify(self) -> None:
        user = self.shop.customer
        named = {"first": user["name"]["first_name"], "last": user["name"]["last_name"], "zip": user["address"]["zip"]}
        self.say("user", "hello")
        self.say("assistant", "who")
        self.say("user", "me", **named)
        namesakes = [other for other in self.shop.users.values() if other["name"]["last_name"] == named["last"]]
        near = [{key: other[key] for key in ("user_id", "name", "email", "address")} for other in namesakes]
        self.rng.shuffle(near)
        self.ask("find_users_by_last_name", {"last_name": named["last"]}, near)
        self.account = self.ask("get_user_details", {"user_id": user["user_id"]}, user)
        self.transcript.need([Part(f'"user_id": "{user["user_id"]}"', self.account)], "who the customer is", asked=True)

    def aside(self) -> None:
        """Perhaps a condition for all that follows, said in passing."""
        if self.rng.random() < 0.7:
            return
        asked = self.rng.random() < 0.7
        self.transcript.need(self.say("user", "aside"), "a condition for all that follows", asked=asked)
        self.say("assistant", "noted")


class _Wish:
    """One exchange: the item is found, a variant chosen (and chosen again), paid for, and done or put off."""

    def __init__(self, desk: _Desk, order: str, item: Row) -> None:
        self.desk, self.rng, self.order, self.item = desk, desk.rng, order, item
        self.product = desk.shop.products[self.item["name"]]
        self.needed: list[tuple[tuple[Part, ...], str]] = []

    def find(self) -> None:
        """Look through the customer's orders until the item turns up."""
        self.desk.say("user", "wish", product=self.item["name"], colour=" ".join(self.item["options"].values()))
        others = [order for order in self.desk.shop.customer["orders"] if order != self.order]
        for order in [*self.rng.sample(others, self.rng.randrange(1, len(others))), self.order]:
            at = self.desk.ask("get_order_details", {"order_id": order}, self.desk.shop.orders[order])
        shown = Part(f'"order_id": "{self.order}"', at)
        at = self.desk.ask("get_product_details", {"product_id": self.product["product_id"]}, self.product)
        said = self.desk.say(
            "assistant", "found", order=self.order, product=self.item["name"], item=self.item["item_id"]
        )
        self.needed.append(((stated(said, shown),), "the order it is about"))
        self.shown = at

    def choose(self) -> None:
        """The customer states what it must be, the agent names the one variant; sometimes all that once more."""
        for again in range(1 + (self.rng.random() < 0.4)):
            variant = self.rng.choice([row for row in self.product["variants"].values() if row["available"]])
            wanted = "; ".join(f"{option} {value}" for option, value in variant["options"].items())
            self.desk.say("user", "rather" if again else "prefer", options=wanted)
            named = {"item": variant["item_id"], "price": f"${variant['price']}"}
            said = self.desk.say("assistant", self.rng.choice(("offer", "agree")), options=wanted, **named)
            record = Part(f'"item_id": "{variant["item_id"]}"', self.shown)
            chosen = stated(said, record)
        self.needed.append(((chosen,), "changed: only the newest counts" if again else "chosen"))

    def pay(self) -> None:
        """By a method that the customer describes and the account lists."""
        card_id, card = self.rng.choice(list(self.desk.shop.customer["payment_methods"].items()))
        self.card = card_id
        how = {"source": card["source"].replace("_", " "), "four": card["last_four"]}
        self.needed.append((self.desk.say("user", "pay", **how), "how it is to be paid"))
        self.needed.append(((Part(f'"{card_id}": {{"source"', self.desk.account),), "the payment method's id"))

    def carry_out(self) -> None:
        reference = f"EX-{self.rng.randrange(10**5, 10**6)}"
        arguments = {"order_id": self.order, "item_ids": [self.item["item_id"]], "payment_method_id": self.card}
        order = self.desk.shop.orders[self.order] | {"status": "exchange requested", "reference": reference}
        at = self.desk.ask("exchange_delivered_order_items", arguments, order)
        said = self.desk.say("assistant", "done", reference=reference, product=self.item["name"])
        shown = Part(f'"reference": "{reference}"', at)
        self.desk.transcript.need([stated(said, shown)], "what was done")


def shop(name: str, size: int) -> Case:
    """Exchanges until the size is reached; one of the first is put off, and is what comes next."""
    rng = random.Random(name)
    words = bank("shop")
    desk = _Desk(rng, words)
    desk.transcript.say("system", words["policy"])
    desk.identify()
    put_off, opened = rng.randrange(3), None
    wishes = _wishes(desk)
    for number, wish in enumerate(wishes):
        wish.find()
        desk.aside()
        wish.choose()
        desk.aside()
        wish.pay()
        if number == put_off:
            opened = wish
            desk.say("user", "later")
            desk.say("assistant", "noted")
        else:
            wish.carry_out()
        if desk.transcript.chars > size and opened:
            break
    for parts, why in opened.needed:
        desk.transcript.need(parts, why, asked=True)
    desk.say("user", "now", product=opened.item["name"])
    task = f"Carry out the exchange of the {opened.item['name']} that was put off, as the customer wants it."
    return desk.transcript.case("service", name, task, words["tools"])


def _wishes(desk: _Desk) -> list[_Wish]:
    """Every item of the customer once, each product under its own name once."""
    orders = [(order, item) for order in desk.shop.customer["orders"] for item in desk.shop.orders[order]["items"]]
    desk.rng.shuffle(orders)
    products = {item["name"]: _Wish(desk, order, item) for order, item in orders}
    return list(products.values())
