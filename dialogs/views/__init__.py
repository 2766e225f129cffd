"""Pages and actions. A view reads the request, calls one selector or service, and words the answer."""

from __future__ import annotations
