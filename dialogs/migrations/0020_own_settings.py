"""Settings of an agent's own: which engine compacts, which strategies, with which numbers. And the LLM that a dialog
changes to once it is compacted."""

from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("dialogs", "0019_prefill")]

    operations = [
        migrations.AddField(
            model_name="agent",
            name="own_settings",
            field=models.TextField(blank=True, editable=False, verbose_name="settings of its own"),
        ),
        migrations.AddField(
            model_name="dialog",
            name="llm_after",
            field=models.ForeignKey(
                blank=True,
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="dialogs.llm",
            ),
        ),
    ]
