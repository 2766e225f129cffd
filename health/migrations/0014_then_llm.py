from django.db import migrations, models
import django.db.models.deletion


class Migration(migrations.Migration):
    dependencies = [
        ("dialogs", "0014_guard"),
        ("health", "0013_reasons_by_code"),
    ]

    operations = [
        migrations.AddField(
            model_name="compactionrun",
            name="then_llm",
            field=models.ForeignKey(
                null=True,
                blank=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="dialogs.llm",
                verbose_name="LLM that answers afterwards",
            ),
        ),
    ]
