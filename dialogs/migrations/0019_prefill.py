"""Whether an LLM goes on with an answer that ends the request."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("dialogs", "0016_reasons_by_code")]

    operations = [
        migrations.AddField(
            model_name="llm",
            name="prefill",
            field=models.CharField(
                blank=True,
                choices=[
                    ("continues", "goes on with the last message"),
                    ("refused", "begins a message of its own"),
                ],
                editable=False,
                max_length=20,
            ),
        ),
    ]
