"""Many dialogs of many messages, in seconds: one dialog is written as Dominds writes it, and copied by the database.

Called where Django is loaded over the database that is to be filled. Each copy is the same but for its ids and
its owner.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from hashlib import sha256
from typing import Any
from uuid import uuid4

from django.contrib.auth.models import User
from django.core.management.color import no_style
from django.db import connection, models, transaction
from django.utils import timezone

from dialogs.models import Agent, ClientConversation, Course, Dialog, Generation, Message, PrefixNode, SearchText
from dialogs.models.message import MessageOrigin, Role
from dialogs.transcript.search import index_words
from health.models import HealthReading

WORDS = 60
# An average answer is longer than a question, and both are far from what a window holds.
VOCABULARY = 4_000
CHUNK = 5_000
# As long ago as the first was said; the copies follow until yesterday.
YEAR = timedelta(days=365)


def fill(*, owners: Sequence[User], agent: Agent, dialogs: int, messages: int) -> int:
    """So many dialogs for these owners in turn, half of them driven by clients; how many messages there are then."""
    with transaction.atomic():
        first = _template(owners[0], agent, messages)
        if copies := _copies(first, owners, dialogs - 1):
            with _without_indexes():
                _copy_rows(first, copies, messages)
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            for statement in connection.ops.sequence_reset_sql(no_style(), [*MODELS, Course]):
                cursor.execute(statement)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return Message.objects.count()


def text(rng: random.Random, words: int = WORDS) -> str:
    """Words with frequencies as in a language: the first ones of the vocabulary are the most frequent."""
    return " ".join(f"word{int(VOCABULARY * rng.random() ** 3)}" for _ in range(words)).capitalize() + "."


def _template(owner: User, agent: Agent, messages: int) -> Dialog:
    dialog = Dialog.objects.create(
        owner=owner, agent=agent, llm=agent.llm, title="Filled 0", active_at=timezone.now() - YEAR
    )
    course = Course.objects.create(dialog=dialog, number=1)
    said = _said(dialog, course, messages)
    Message.objects.bulk_create(said, batch_size=CHUNK)
    SearchText.objects.bulk_create(SearchText(message=one, words=index_words(one.content)) for one in said)
    PrefixNode.objects.bulk_create(
        PrefixNode(owner=owner, sha256=sha256(f"{one.pk}".encode()).hexdigest(), message=one) for one in said
    )
    answers = [one for one in said if one.role == Role.ASSISTANT]
    made = Generation.objects.bulk_create(_generation(one, agent) for one in answers)
    HealthReading.objects.bulk_create(
        HealthReading(generation=one, level="healthy", prompt_tokens=1_000, context_window=100_000, hard_util=0.01)
        for one in made
    )
    dialog.current_leaf, dialog.last_seq = said[-1], messages
    dialog.save()
    return dialog


def _said(dialog: Dialog, course: Course, messages: int) -> list[Message]:
    """A question and an answer in turn, each below the one before, their ids without a gap."""
    rng, last = random.Random(0), Message.objects.aggregate(last=models.Max("pk"))["last"] or 0
    roles = ((Role.USER, MessageOrigin.TYPED, WORDS // 2), (Role.ASSISTANT, MessageOrigin.AGENT, 2 * WORDS))
    return [
        Message(
            pk=last + at + 1,
            dialog=dialog,
            course=course,
            seq=at + 1,
            parent_id=last + at if at else None,
            turn=at // 2 + 1,
            role=roles[at % 2][0],
            origin=roles[at % 2][1],
            content=text(rng, roles[at % 2][2]),
        )
        for at in range(messages)
    ]


def _generation(answer: Message, agent: Agent) -> Generation:
    return Generation(
        # Ids as those of the messages: what points at one is moved by the same number as what points at the other.
        pk=answer.pk,
        dialog_id=answer.dialog_id,
        course_id=answer.course_id,
        number=answer.turn,
        turn=answer.turn,
        llm=agent.llm,
        llm_name=agent.llm.slug,
        prompt_leaf_id=answer.parent_id,
        message=answer,
        status=Generation.Status.FINISHED,
        fencing_token=1,
        prompt_tokens=1_000,
        completion_tokens=160,
        finished_at=timezone.now(),
    )


# --- Copies, by statements of the database ---
MODELS: tuple[type[models.Model], ...] = (Message, SearchText, PrefixNode, Generation, HealthReading)
# Columns that hold an id of a message or of a generation, by table; an empty place is that of the id itself.
MOVED = {
    Message: ("id", "parent_id"),
    SearchText: ("message_id",),
    PrefixNode: ("id", "message_id"),
    Generation: ("id", "prompt_leaf_id", "message_id"),
    HealthReading: ("generation_id",),
}


def _copies(first: Dialog, owners: Sequence[User], count: int) -> list[tuple[int, Dialog, Course]]:
    """The dialogs of the copies and their courses, numbered from 1."""
    dialogs = [
        Dialog(
            id=uuid4(),
            owner=owners[at % len(owners)],
            agent=first.agent,
            llm=first.llm,
            title=f"Filled {at}",
            active_at=first.active_at + at * YEAR / (count + 1),
            is_client_driven=at // len(owners) % 2 == 1,
            last_seq=first.last_seq,
        )
        for at in range(1, count + 1)
    ]
    Dialog.objects.bulk_create(dialogs, batch_size=CHUNK)
    driven = [ClientConversation(dialog=one, model=first.llm.slug) for one in dialogs if one.is_client_driven]
    ClientConversation.objects.bulk_create(driven, batch_size=CHUNK)
    courses = Course.objects.bulk_create([Course(dialog=one, number=1) for one in dialogs], batch_size=CHUNK)
    return [(at, dialog, course) for at, (dialog, course) in enumerate(zip(dialogs, courses, strict=True), 1)]


def _copy_rows(first: Dialog, copies: Sequence[tuple[int, Dialog, Course]], messages: int) -> None:
    """Ids of the copies follow each other in steps of the dialog's length."""
    quoted = connection.ops.quote_name
    key = Dialog._meta.pk.get_db_prep_value
    columns = [Dialog._meta.get_field(name) for name in ("id", "owner", "active_at")]
    with connection.cursor() as cursor:
        types = [column.db_type(connection) for column in columns]
        cursor.execute(
            "CREATE TEMPORARY TABLE copies (number bigint, course bigint, dialog {}, owner {}, said {})".format(*types)
        )
        cursor.executemany(
            "INSERT INTO copies VALUES (%s, %s, %s, %s, %s)",
            [(at, course.pk, *_cells(dialog, columns)) for at, dialog, course in copies],
        )
        for model in MODELS:
            values = _values(model, messages)
            into = ", ".join(quoted(column) for column in values)
            source = _source(model)
            cursor.execute(
                f"INSERT INTO {quoted(model._meta.db_table)} ({into}) "
                f"SELECT {', '.join(values.values())} FROM {source} CROSS JOIN copies c",
                [key(first.pk, connection)],
            )
        leaf = f"(SELECT {first.current_leaf_id} + c.number * {messages} FROM copies c WHERE c.dialog = id)"
        cursor.execute(f"UPDATE dialogs_dialog SET current_leaf_id = {leaf} WHERE id IN (SELECT dialog FROM copies)")
        cursor.execute("DROP TABLE copies")


def _cells(row: models.Model, columns: Sequence[Any]) -> list[Any]:
    """As the database is given them."""
    return [column.get_db_prep_value(column.value_from_object(row), connection) for column in columns]


# For each index and constraint of these tables, but primary keys and checks: statements that drop and create it.
BESIDE_KEYS = """
    SELECT format('DROP INDEX %%s', indexrelid::regclass), pg_get_indexdef(indexrelid), 2
    FROM pg_index WHERE indrelid::regclass::text = ANY(%(tables)s)
    AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid)
    UNION ALL
    SELECT format('ALTER TABLE %%s DROP CONSTRAINT %%I', conrelid::regclass, conname),
        format('ALTER TABLE %%s ADD CONSTRAINT %%I %%s', conrelid::regclass, conname, pg_get_constraintdef(oid)), 1
    FROM pg_constraint WHERE contype IN ('f', 'u') AND conrelid::regclass::text = ANY(%(tables)s)
    ORDER BY 3
"""


@contextmanager
def _without_indexes() -> Iterator[None]:
    """On PostgreSQL indexes are dropped and created afterwards, which takes a fraction of the time."""
    if connection.vendor != "postgresql":
        yield
        return
    # What is still to be checked at the end of the transaction would forbid it.
    connection.check_constraints()
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL maintenance_work_mem = '1GB'")
        cursor.execute(BESIDE_KEYS, {"tables": [model._meta.db_table for model in MODELS]})
        beside = cursor.fetchall()
        for drop, *_make in beside:
            cursor.execute(drop)
        yield
        for _drop, make, _order in reversed(beside):
            cursor.execute(make)


def _values(model: type[models.Model], messages: int) -> Mapping[str, str]:
    """What stands in each column of a copy."""
    other: dict[str, str] = {"dialog_id": "c.dialog", "course_id": "c.course", "owner_id": "c.owner"}
    other |= dict.fromkeys(("created_at", "started_at", "finished_at", "read_at"), "c.said")
    moved = {column: f"t.{column} + c.number * {messages}" for column in MOVED[model]}
    if model is PrefixNode:
        other["sha256"] = "substr(t.sha256, 1, 48) || c.number"
    columns = [field.column for field in model._meta.concrete_fields]
    return {column: (moved | other).get(column, f"t.{connection.ops.quote_name(column)}") for column in columns}


def _source(model: type[models.Model]) -> str:
    """The template's rows, as `t`."""
    table = model._meta.db_table
    if model in (Message, Generation):
        return f"(SELECT * FROM {table} WHERE dialog_id = %s) t"
    (by, of) = ("generation_id", Generation) if model is HealthReading else ("message_id", Message)
    which = f"SELECT id FROM {of._meta.db_table} WHERE dialog_id = %s"
    return f"(SELECT * FROM {table} WHERE {by} IN ({which})) t"


def sizes() -> dict[str, int]:
    """Bytes of each table with its indexes, largest first; on SQLite of the whole database."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            cursor.execute("SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()")
            return {"database": int(cursor.fetchone()[0])}
        cursor.execute(
            "SELECT relname, pg_total_relation_size(oid) FROM pg_class "
            "WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY 2 DESC"
        )
        return {str(name): int(size) for name, size in cursor.fetchall()}


def indexes() -> list[tuple[str, int, int]]:
    """Of PostgreSQL's indexes: name, bytes, and how often each was looked into; the largest first."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT indexrelname, pg_relation_size(indexrelid), idx_scan FROM pg_stat_user_indexes ORDER BY 2 DESC"
        )
        return cursor.fetchall()


def answered() -> dict[str, Any]:
    """How many messages and generations there are, and how many of these ended badly."""
    found = Generation.objects.values_list("status").annotate(count=models.Count("pk"))
    return {"messages": Message.objects.count(), "generations": dict(found)}
