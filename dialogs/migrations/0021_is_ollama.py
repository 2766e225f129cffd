"""What a server that was added as OpenAI-compatible said of itself: whether it is an Ollama, and at which address."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("dialogs", "0020_own_settings")]

    operations = [
        migrations.AddField(
            model_name="provider", name="is_ollama", field=models.BooleanField(editable=False, null=True)
        ),
        migrations.AddField(
            model_name="provider",
            name="asked_at_url",
            field=models.CharField(blank=True, editable=False, max_length=500),
        ),
    ]
