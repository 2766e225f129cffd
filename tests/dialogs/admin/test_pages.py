"""The admin as a part of the whole: its pages look like the others'."""

from __future__ import annotations

import re

import pytest
from django.test import Client


@pytest.mark.parametrize("path", ["/", "/admin/"])
def test_every_page_has_the_icon(path: str, staff: Client) -> None:
    page = staff.get(path).content.decode()

    assert re.search(r'<link rel="icon" href="/static/favicon[^"]*svg"', page)
