"""A dialog as a file: JSON that can be read back, and Markdown for people.

`shape.py` and `shape_views.py` say what is in the file, in types of `dialogs/common/file_fields.py`. One from outside
is checked by `reading.py` (with pydantic field by field, with `laws.py` as a whole) and adapted by `adapting.py`;
`exporting.py` and `importing.py` stand between the file and the database's tables.
"""

from __future__ import annotations

from dialogs.transfer.exporting import export_json
from dialogs.transfer.importing import import_dialog, parse_json
from dialogs.transfer.markdown import export_markdown

__all__ = ["export_json", "export_markdown", "import_dialog", "parse_json"]
