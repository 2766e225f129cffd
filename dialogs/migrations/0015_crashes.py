from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("dialogs", "0014_guard"),
    ]

    operations = [
        migrations.AddField(
            model_name="dialog",
            name="crashes",
            field=models.PositiveSmallIntegerField(default=0, editable=False),
        ),
        migrations.AddField(
            model_name="dialog",
            name="deaths",
            field=models.PositiveSmallIntegerField(default=0, editable=False),
        ),
        migrations.AddField(
            model_name="dialog",
            name="slice_seq",
            field=models.PositiveIntegerField(editable=False, null=True),
        ),
    ]
