"""The words of every message, and an index over them in the way of each database.

Django does not know the index: a later migration that makes SQLite copy this table must make its triggers again.
"""

import django.db.models.deletion
from django.db import migrations, models

from dialogs.transcript.search import index_words

CHUNK = 500

# The words stand in the table; the index holds only where they are, and follows every change by itself.
SQLITE = (
    """
    CREATE VIRTUAL TABLE dialogs_searchtext_index USING fts5(
        words, content='dialogs_searchtext', content_rowid='message_id', prefix='1 2 3',
        tokenize='unicode61 remove_diacritics 0'
    )
    """,
    """
    CREATE TRIGGER dialogs_searchtext_added AFTER INSERT ON dialogs_searchtext BEGIN
        INSERT INTO dialogs_searchtext_index(rowid, words) VALUES (new.message_id, new.words);
    END
    """,
    """
    CREATE TRIGGER dialogs_searchtext_erased AFTER DELETE ON dialogs_searchtext BEGIN
        INSERT INTO dialogs_searchtext_index(dialogs_searchtext_index, rowid, words)
        VALUES ('delete', old.message_id, old.words);
    END
    """,
    """
    CREATE TRIGGER dialogs_searchtext_changed AFTER UPDATE ON dialogs_searchtext BEGIN
        INSERT INTO dialogs_searchtext_index(dialogs_searchtext_index, rowid, words)
        VALUES ('delete', old.message_id, old.words);
        INSERT INTO dialogs_searchtext_index(rowid, words) VALUES (new.message_id, new.words);
    END
    """,
)
POSTGRESQL = (
    "CREATE INDEX dialogs_searchtext_index ON dialogs_searchtext USING gin (to_tsvector('simple', words))",
)
# Its triggers and PostgreSQL's index go with the table.
UNDO_SQLITE = ("DROP TABLE dialogs_searchtext_index",)


def make_index(apps, schema_editor):
    for statement in SQLITE if schema_editor.connection.vendor == "sqlite" else POSTGRESQL:
        schema_editor.execute(statement)


def drop_index(apps, schema_editor):
    for statement in UNDO_SQLITE if schema_editor.connection.vendor == "sqlite" else ():
        schema_editor.execute(statement)


def read_messages(apps, schema_editor):
    """Some at a time, by their ids: a message may hold megabytes."""
    messages, calls = apps.get_model("dialogs", "Message"), apps.get_model("dialogs", "ToolCall")
    search_texts = apps.get_model("dialogs", "SearchText")
    last = 0
    while chunk := list(messages.objects.filter(pk__gt=last).order_by("pk").values_list("pk", "content")[:CHUNK]):
        asked = {}
        for pk, name, arguments in calls.objects.filter(message_id__in=[pk for pk, _content in chunk]).values_list(
            "message_id", "name", "arguments"
        ):
            asked.setdefault(pk, []).extend((name, arguments))
        search_texts.objects.bulk_create(
            [search_texts(message_id=pk, words=index_words(content, *asked.get(pk, ()))) for pk, content in chunk]
        )
        last = chunk[-1][0]


class Migration(migrations.Migration):
    dependencies = [("dialogs", "0005_more_providers")]

    operations = [
        migrations.CreateModel(
            name="SearchText",
            fields=[
                (
                    "message",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="search_text",
                        serialize=False,
                        to="dialogs.message",
                    ),
                ),
                ("words", models.TextField(blank=True)),
            ],
        ),
        migrations.RunPython(make_index, drop_index),
        migrations.RunPython(read_messages, migrations.RunPython.noop),
    ]
