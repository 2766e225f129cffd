from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("health", "0012_window_events"),
    ]

    operations = [
        migrations.AddField(
            model_name="compactionrun",
            name="why",
            field=models.JSONField(blank=True, default=dict),
        ),
    ]
