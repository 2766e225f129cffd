"""Settings of an agent's own: which engine compacts, which strategies, with which numbers."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("dialogs", "0019_prefill")]

    operations = [
        migrations.AddField(
            model_name="agent",
            name="own_settings",
            field=models.TextField(blank=True, editable=False, verbose_name="settings of its own"),
        ),
    ]
