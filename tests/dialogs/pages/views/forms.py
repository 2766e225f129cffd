"""What a browser would send of a form: fields that are switched off or not chosen are not sent."""

from __future__ import annotations

from collections.abc import Mapping

from tests.dialogs.pages.views.pages import Page

Fields = dict[str, list[str]]


def sent(page: Page, form_id: str) -> Fields:
    """Every named field inside the form with this id, buttons left out."""
    found: Fields = {}
    select, inside = "", False
    for tag, attrs in page.tags:
        if tag == "form":
            inside = attrs.get("id") == form_id
        name = attrs.get("name")
        if not inside:
            continue
        if tag == "input" and name and "disabled" not in attrs and _counts(attrs):
            found.setdefault(name, []).append(attrs.get("value") or ("on" if attrs.get("type") == "checkbox" else ""))
        elif tag == "select":
            select = name or ""
        elif tag == "option" and ("selected" in attrs or select not in found):
            found[select] = [attrs.get("value") or ""]
    return found


def _counts(attrs: Mapping[str, str | None]) -> bool:
    return attrs.get("type") != "checkbox" or "checked" in attrs


def field(page: Page, name: str) -> Mapping[str, str | None]:
    """The input of this name. One that says no value is empty."""
    found = next(attrs for tag, attrs in page.tags if tag == "input" and attrs.get("name") == name)
    return {"value": "", **found}
