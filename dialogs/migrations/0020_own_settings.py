"""Settings of an agent's own: which engine compacts, which strategies, with which numbers. The LLM that a dialog changes
to once it is compacted. With which window LM Studio is to load a model."""

from __future__ import annotations

import django.core.validators
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
        migrations.AddField(
            model_name="llm",
            name="load_with",
            field=models.PositiveIntegerField(
                blank=True,
                help_text=(
                    "LM Studio only: where the model is not loaded, load it with this window. Empty: never load it."
                ),
                null=True,
                validators=[django.core.validators.MinValueValidator(1)],
                verbose_name="load with (tokens)",
            ),
        ),
        migrations.AddField(
            model_name="llm",
            name="loading_until",
            field=models.DateTimeField(blank=True, editable=False, null=True),
        ),
    ]
