"""Values that every room speaks of: units, ports, outcomes, reasons, the configuration."""

from __future__ import annotations
