"""Indexes of one column with which another index begins. Only they are dropped: SQLite would copy the tables."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

TWICE = {
    "dialogs_message_dialog_id_91ff4716": 'dialogs_message ("dialog_id")',
    "dialogs_prefixnode_owner_id_c40740db": 'dialogs_prefixnode ("owner_id")',
    "dialogs_generation_dialog_id_3365c34e": 'dialogs_generation ("dialog_id")',
    "dialogs_generation_course_id_14e0a5fb": 'dialogs_generation ("course_id")',
}


def without_index(model, name, to, related_name):
    field = models.ForeignKey(
        db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name=related_name, to=to
    )
    return migrations.AlterField(model_name=model, name=name, field=field)


class Migration(migrations.Migration):

    dependencies = [
        ("dialogs", "0035_search_without_index"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(f"DROP INDEX IF EXISTS {name}", f"CREATE INDEX {name} ON {columns}")
                for name, columns in TWICE.items()
            ],
            state_operations=[
                without_index("message", "dialog", "dialogs.dialog", "messages"),
                without_index("prefixnode", "owner", settings.AUTH_USER_MODEL, "+"),
                without_index("generation", "dialog", "dialogs.dialog", "generations"),
                without_index("generation", "course", "dialogs.course", "generations"),
            ],
        ),
    ]
