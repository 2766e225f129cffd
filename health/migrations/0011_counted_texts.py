from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("health", "0010_slice_failed")]

    operations = [
        migrations.CreateModel(
            name="CountedText",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("digest", models.CharField(max_length=64, unique=True, verbose_name="hash")),
                ("tokens", models.PositiveIntegerField(verbose_name="tokens")),
            ],
            options={"verbose_name": "counted text", "verbose_name_plural": "counted texts"},
        ),
        migrations.AddField(
            model_name="llmcalibration",
            name="counter",
            field=models.CharField(blank=True, default="", max_length=60, verbose_name="counter"),
        ),
    ]
