"""System checks of the health app. Ids `health.*`; each has a hint that says what to do."""

from __future__ import annotations
