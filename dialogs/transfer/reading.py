"""A dialog file from outside, checked field by field and as a whole before any row is written."""

from __future__ import annotations

import json
from typing import Any

from django.utils.translation import gettext as _
from pydantic import TypeAdapter, ValidationError

from dialogs.common.errors import DialogError
from dialogs.common.file_fields import path_of, problems_of
from dialogs.models.dialog import OwnTools
from dialogs.models.llm import Compaction
from dialogs.transfer.adapting import as_ordinary
from dialogs.transfer.laws import check_whole, refuse
from dialogs.transfer.shape import FORMAT, DialogFile

MAX_BYTES = 100 * 1024 * 1024
FILE = TypeAdapter(DialogFile)
# What stands in a file of an older format, had it the fields that came later.
OF_SEVEN: dict[str, Any] = {"own_tools": OwnTools.AUTOMATIC.value}
OF_SIX: dict[str, Any] = {**OF_SEVEN, "standing_rules": []}
OF_FIVE: dict[str, Any] = {**OF_SIX, "compaction": Compaction.AUTOMATIC.value}
OLDER = {"dominds.dialog/7": OF_SEVEN, "dominds.dialog/6": OF_SIX, "dominds.dialog/5": OF_FIVE}


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
    try:
        file = FILE.validate_python(_as_newest(data))
    except ValidationError as error:
        location, inside, problem = problems_of(error)[0]
        refuse(path_of(location) + inside, problem)
    file = as_ordinary(file)
    check_whole(file)
    return file


def _as_newest(data: object) -> object:
    if not isinstance(data, dict) or not isinstance(named := data.get("format"), str) or named not in OLDER:
        return data
    for name in OLDER[named].keys() & data.keys():
        refuse(name, _("is a field that this version does not know."))
    return data | OLDER[named] | {"format": FORMAT}
