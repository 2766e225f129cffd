"""A dialog keeps the snapshot of its task; the hidden agent that only stands for an LLM goes with it."""

from __future__ import annotations

from django.db import migrations, models

import dialogs.models.agent


class Migration(migrations.Migration):
    dependencies = [("dialogs", "0008_labels")]

    operations = [
        migrations.AddField(
            model_name="dialog",
            name="task_snapshot",
            field=models.JSONField(blank=True, default=dict, editable=False),
        ),
        migrations.AlterField(
            model_name="agent",
            name="llm",
            field=models.ForeignKey(
                on_delete=dialogs.models.agent.unless_direct,
                related_name="agents",
                to="dialogs.llm",
                verbose_name="LLM",
            ),
        ),
    ]
