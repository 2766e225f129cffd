"""`manage.py compact FILE --limit N`: make a chat in a file fit, and say what that cost. Needs no database.

Steps go to standard error while they happen, the result to standard output. The exit status is 1 when the chat
cannot be made to fit, and 2 when the file or an option is not usable.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from health.compaction.config import How
from health.compaction.reading.messages import InvalidMessages, Orphans, parse
from health.compaction.terms.configuration import InvalidConfig
from health.compaction.terms.fates import fates
from health.compaction.terms.outcome import Status, Step
from health.reports import as_json, lines, step_line, svg
from health.services import compact_messages
from health.transcripts import NotATranscript, Transcript, read

UNUSABLE = 2


class Command(BaseCommand):
    help = "Compacts a chat: a JSON array, JSONL, or an export of OpenAI, Open WebUI or Claude Code."
    # The command touches nothing that the checks are about.
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", help="the chat, or - for standard input")
        parser.add_argument("--limit", type=int, required=True, metavar="N", help="the most estimated tokens")
        parser.add_argument("--task", default="", help="what it is all for; without it, the newest words of the user")
        parser.add_argument("--model", default="", help="whose vocabulary counts, such as gpt-4o or llama-3")
        parser.add_argument("--chain", type=_names, metavar="A,B", help="strategies, one after another")
        parser.add_argument("--how", choices=list(How), help="passages first, or the chain first; default: passages")
        parser.add_argument("--embedder", default="minilm", help="minilm, static or none; default: %(default)s")
        parser.add_argument("--judge", action="store_true", help="measure coherence too: embeds everything")
        parser.add_argument("--refuse-orphans", action="store_true", help="stop at unpaired calls and results")
        parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object")
        parser.add_argument("--plot", type=Path, metavar="SVG", help="write a picture of what happened")
        parser.add_argument("--out", type=Path, metavar="FILE", help="write the compacted messages as JSON")

    def handle(self, *, file: str, **options: Any) -> None:
        try:
            chat = read(_bytes(file))
            self._say_about(chat)
            self._compact(chat, options)
        except (NotATranscript, InvalidMessages) as error:
            raise CommandError(f"{file}: {error}", returncode=UNUSABLE) from error
        except (InvalidConfig, OSError) as error:
            raise CommandError(str(error), returncode=UNUSABLE) from error

    def _compact(self, chat: Transcript, options: dict[str, Any]) -> None:
        orphans = Orphans.REFUSE if options["refuse_orphans"] else Orphans.REPAIR
        limit = options["limit"]
        outcome = compact_messages(
            chat.messages,
            limit_tokens=limit,
            task=options["task"],
            model=options["model"],
            chain=options["chain"],
            how=options["how"],
            tools=chat.tools,
            embedder=options["embedder"],
            judge=options["judge"],
            on_step=self._tell,
            orphans=orphans,
        )
        found = fates(parse(chat.messages, orphans=orphans).units, outcome.state.units)
        if options["as_json"]:
            self.stdout.write(json.dumps(as_json(outcome, found, limit=limit), indent=1))
        else:
            self.stdout.write("\n".join(lines(outcome, found, limit=limit)))
        self._write(options["plot"], svg(outcome, found, limit=limit))
        self._write(options["out"], json.dumps(outcome.messages, indent=1) + "\n")
        if outcome.status is Status.FAILED:
            sys.exit(1)

    def _say_about(self, chat: Transcript) -> None:
        self.stderr.write(f"Read {len(chat.messages):,} messages ({chat.form}).", self.style.NOTICE)
        for note in chat.notes:
            self.stderr.write(note, self.style.NOTICE)

    def _tell(self, step: Step) -> None:
        self.stderr.write(step_line(step), self.style.NOTICE)

    def _write(self, target: Path | None, text: str) -> None:
        if target is not None:
            target.write_text(text, encoding="utf-8")
            self.stderr.write(f"Wrote {target}.", self.style.NOTICE)


def _bytes(file: str) -> bytes:
    return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())
