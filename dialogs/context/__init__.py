"""What the next request is made of and how full it is, estimated."""

from __future__ import annotations
