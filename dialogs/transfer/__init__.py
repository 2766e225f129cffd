"""A dialog as a file: JSON, which can be imported again, and Markdown for people.

`shape.py` and `shape_views.py` are the file's schema, with the types of `dialogs/common/file_fields.py`. `exporting.py`
writes it. `importing.py` checks each field with pydantic and the whole with `laws.py`, adapts it with `adapting.py`,
and inserts the rows with `references.py`.
"""

from __future__ import annotations

from dialogs.transfer.exporting import export_json
from dialogs.transfer.importing import NoAgent, import_dialog, parse_json
from dialogs.transfer.markdown import export_markdown

__all__ = ["NoAgent", "export_json", "export_markdown", "import_dialog", "parse_json"]
