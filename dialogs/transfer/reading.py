"""A dialog file from outside, checked field by field and as a whole before any row is written."""

from __future__ import annotations

import json

from django.utils.translation import gettext as _

from dialogs.common.errors import DialogError
from dialogs.transfer.adapting import as_ordinary
from dialogs.transfer.laws import check_whole
from dialogs.transfer.place import Place, fields_of, one_of, record
from dialogs.transfer.shape import DialogFile

MAX_BYTES = 100 * 1024 * 1024
# The fields that older formats have not got: `DialogFile` says what they are there.
LACKS: dict[object, tuple[str, ...]] = {
    "dominds.dialog/7": ("own_tools",),
    "dominds.dialog/6": ("own_tools", "standing_rules"),
    "dominds.dialog/5": ("own_tools", "standing_rules", "compaction"),
}


def parse_json(raw: bytes) -> object:
    """JSON from an upload or a file. Raises DialogError with line and column."""
    if len(raw) > MAX_BYTES:
        raise DialogError(_("The file is larger than %(most)s MB.") % {"most": MAX_BYTES // 2**20})
    try:
        return json.loads(raw)
    except json.JSONDecodeError as error:
        place = {"line": error.lineno, "column": error.colno}
        raise DialogError(_("The file is not JSON: line %(line)s, column %(column)s.") % place) from error
    except (ValueError, RecursionError) as error:  # no UTF-8, a number of thousands of digits, endless nesting
        raise DialogError(_("The file is not JSON that can be read.")) from error


def read_file(data: object) -> DialogFile:
    """The checked file. Raises DialogError that names the place."""
    named = data.get("format") if isinstance(data, dict) else None
    fields = dict(fields_of(DialogFile))
    if isinstance(named, str) and named in LACKS:
        fields = {name: read for name, read in fields.items() if name not in LACKS[named]} | {"format": one_of([named])}
    file = as_ordinary(DialogFile(**record(Place(data), fields)))
    check_whole(file)
    return file
