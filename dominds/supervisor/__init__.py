"""What `manage.py up` does: starts every process of one machine as its child, watches them, stops them.

Nothing here knows dialogs; the few things that `up` asks of them are imported where they are asked.
"""

from __future__ import annotations
