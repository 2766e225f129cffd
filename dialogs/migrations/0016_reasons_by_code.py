from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("dialogs", "0015_crashes"),
    ]

    operations = [
        migrations.AddField(
            model_name="generation",
            name="why",
            field=models.JSONField(blank=True, default=dict),
        ),
    ]
