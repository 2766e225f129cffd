"""A dialog file from outside, checked field by field and as a whole before any row is written."""

from __future__ import annotations

import json
from typing import Any

from django.utils.translation import gettext as _

from dialogs.errors import DialogError
from dialogs.transfer.laws import check_whole
from dialogs.transfer.place import Place, Reader, json_object, maybe, one_of, record
from dialogs.transfer.shape import OLDER_FORMAT, DialogFile, GenerationEntry, SentEntry
from dialogs.transfer.tables import DIALOG, GENERATION, OLDER_DIALOG, entries, long_text, seqs

MAX_BYTES = 100 * 1024 * 1024


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
    is_older = isinstance(data, dict) and data.get("format") == OLDER_FORMAT
    file = _older(Place(data)) if is_older else DialogFile(**record(Place(data), DIALOG))
    check_whole(file)
    return file


def _older(place: Place) -> DialogFile:
    """A file from before there were tools. Its instructions stand in every generation anew; here each stands once."""
    texts: dict[str, int] = {}
    generation = {**GENERATION, "sent": _older_sent(texts)}
    table = {
        **OLDER_DIALOG,
        "format": one_of([OLDER_FORMAT]),
        "generations": entries(GenerationEntry, generation),
    }
    fields = record(place, table)
    return DialogFile(**fields, texts=tuple(texts))


def _older_sent(texts: dict[str, int]) -> Reader[SentEntry]:
    """Reads what was sent and adds its instructions, if they are new, to `texts`, by index."""

    def read(place: Place) -> SentEntry:
        fields: dict[str, Any] = record(
            place, {"messages": seqs, "instructions": maybe(long_text), "options": json_object}
        )
        instructions = fields.pop("instructions")
        used = {} if instructions is None else {"instructions": texts.setdefault(instructions, len(texts))}
        return SentEntry(**fields, texts=used)

    return read
