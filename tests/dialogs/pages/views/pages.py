"""Reading pages as a browser would: what may run in them, and what they say."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

from django.test import Client

HTMX = {"HX-Request": "true"}


@dataclass
class Page(HTMLParser):
    """Tags with their attributes, and everything that a strict content security policy would refuse."""

    text: str = ""
    tags: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    offences: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        html, self.text = self.text, ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        names = {name for name, _value in attrs}
        if tag == "style" or (tag == "script" and "src" not in names):
            self.offences.append(f"<{tag}>")
        self.offences += [f"<{tag} {name}>" for name in names if name == "style" or name.startswith(("on", "hx-on"))]
        self.offences += [f"<{tag} {name}={value}>" for name, value in attrs if _is_script(value)]

    def handle_data(self, data: str) -> None:
        self.text += data

    def links(self) -> list[str]:
        return [str(attrs["href"]) for tag, attrs in self.tags if tag == "a" and attrs.get("href")]


@dataclass(frozen=True)
class Menu:
    """What the page says of a message for its menu, whose entries come when it is opened."""

    states: list[str]
    generation: str | None
    priority: str | None
    area: str | None


def menus(found: Page) -> dict[int, Menu]:
    """By message."""
    said = [attrs for tag, attrs in found.tags if tag == "details" and attrs.get("data-message")]
    return {
        int(attrs["data-message"] or 0): Menu(
            (attrs["data-is"] or "").split(),
            *(attrs.get(f"data-{name}") for name in ("generation", "priority", "area")),
        )
        for attrs in said
    }


def _is_script(value: str | None) -> bool:
    return (value or "").strip().lower().startswith(("javascript:", "js:"))


def page(client: Client, url: str, **kwargs: Any) -> Page:
    response = client.get(url, **kwargs)
    assert response.status_code == 200, response.status_code
    return Page(response.content.decode())
