"""The state of a turn and its writes: lease, messages, generations, tool calls, remediation, events."""

from __future__ import annotations
