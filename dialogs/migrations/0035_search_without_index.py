"""A search reads the words of one dialog: an index over those of all of them is not needed, and every message paid for it."""

from importlib import import_module

from django.db import migrations

SQLITE = (
    "DROP TRIGGER IF EXISTS dialogs_searchtext_added",
    "DROP TRIGGER IF EXISTS dialogs_searchtext_erased",
    "DROP TRIGGER IF EXISTS dialogs_searchtext_changed",
    "DROP TABLE IF EXISTS dialogs_searchtext_index",
)
POSTGRESQL = ("DROP INDEX IF EXISTS dialogs_searchtext_index",)
FILL_AGAIN = "INSERT INTO dialogs_searchtext_index(dialogs_searchtext_index) VALUES ('rebuild')"


def drop_index(apps, schema_editor):
    for statement in SQLITE if schema_editor.connection.vendor == "sqlite" else POSTGRESQL:
        schema_editor.execute(statement)


def make_index(apps, schema_editor):
    import_module("dialogs.migrations.0004_squashed_0013_last_sent").make_index(apps, schema_editor)
    if schema_editor.connection.vendor == "sqlite":
        schema_editor.execute(FILL_AGAIN)


class Migration(migrations.Migration):

    dependencies = [
        ("dialogs", "0034_account_off"),
    ]

    operations = [
        migrations.RunPython(drop_index, make_index),
    ]
