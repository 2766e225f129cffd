"""How much was done since somebody last looked for a loop, and a dialog that rests because of one. Beside them which
try of a tool call is made, of how many, and when the next one is."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("dialogs", "0009_task_snapshot")]

    operations = [
        migrations.AddField(
            model_name="dialog",
            name="unchecked_calls",
            field=models.PositiveIntegerField(default=0, editable=False),
        ),
        migrations.AlterField(
            model_name="dialog",
            name="paused_by",
            field=models.CharField(
                blank=True,
                choices=[
                    ("", ""),
                    ("person", "a person"),
                    ("failure", "a failure"),
                    ("rounds", "too many tool rounds"),
                    ("full", "reminders and Taskdoc that fill the window"),
                    ("loop", "an agent that goes round in circles"),
                ],
                default="",
                max_length=20,
            ),
        ),
        migrations.AddField("toolcall", "attempt", models.PositiveIntegerField(default=1)),
        migrations.AddField("toolcall", "most_attempts", models.PositiveIntegerField(default=1)),
        migrations.AddField("toolcall", "retry_at", models.DateTimeField(blank=True, null=True)),
    ]
