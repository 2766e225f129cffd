"""System checks of the dialogs app. Ids `dialogs.*`; each has a hint that says what to do."""

from __future__ import annotations
