"""The rest of the tables of dialogs as they were on 2026-11-22, and the index over the words of messages.

An installation of that day has the replaced ones. Django does not know the index: a later migration that makes SQLite
copy this table must make its triggers again.
"""

import dialogs.models.agent
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


# The words stand in the table; the index holds only where they are, and follows every change by itself.
SQLITE = (
    """
    CREATE VIRTUAL TABLE dialogs_searchtext_index USING fts5(
        words, content='dialogs_searchtext', content_rowid='message_id', prefix='1 2 3',
        tokenize='unicode61 remove_diacritics 0'
    )
    """,
    """
    CREATE TRIGGER dialogs_searchtext_added AFTER INSERT ON dialogs_searchtext BEGIN
        INSERT INTO dialogs_searchtext_index(rowid, words) VALUES (new.message_id, new.words);
    END
    """,
    """
    CREATE TRIGGER dialogs_searchtext_erased AFTER DELETE ON dialogs_searchtext BEGIN
        INSERT INTO dialogs_searchtext_index(dialogs_searchtext_index, rowid, words)
        VALUES ('delete', old.message_id, old.words);
    END
    """,
    """
    CREATE TRIGGER dialogs_searchtext_changed AFTER UPDATE ON dialogs_searchtext BEGIN
        INSERT INTO dialogs_searchtext_index(dialogs_searchtext_index, rowid, words)
        VALUES ('delete', old.message_id, old.words);
        INSERT INTO dialogs_searchtext_index(rowid, words) VALUES (new.message_id, new.words);
    END
    """,
)
POSTGRESQL = (
    "CREATE INDEX dialogs_searchtext_index ON dialogs_searchtext USING gin (to_tsvector('simple', words))",
)
# Its triggers and PostgreSQL's index go with the table.
UNDO_SQLITE = ("DROP TABLE dialogs_searchtext_index",)


def make_index(apps, schema_editor):
    for statement in SQLITE if schema_editor.connection.vendor == "sqlite" else POSTGRESQL:
        schema_editor.execute(statement)


def drop_index(apps, schema_editor):
    for statement in UNDO_SQLITE if schema_editor.connection.vendor == "sqlite" else ():
        schema_editor.execute(statement)


class Migration(migrations.Migration):

    initial = True

    replaces = [
        ("dialogs", "0004_views"),
        ("dialogs", "0005_more_providers"),
        ("dialogs", "0006_search_text"),
        ("dialogs", "0007_clients"),
        ("dialogs", "0008_labels"),
        ("dialogs", "0009_task_snapshot"),
        ("dialogs", "0010_loops"),
        ("dialogs", "0011_paused_by_limit"),
        ("dialogs", "0012_provider_slots"),
        ("dialogs", "0013_last_sent"),
    ]

    dependencies = [
        ('dialogs', '0001_squashed_0003_marks_and_limits'),
        ('health', '0001_squashed_0008_newest_runs'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name='course',
            name='head_run',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='health.compactionrun'),
        ),
        migrations.AddField(
            model_name='generation',
            name='course',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='generations', to='dialogs.course'),
        ),
        migrations.AddField(
            model_name='generation',
            name='dialog',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='generations', to='dialogs.dialog'),
        ),
        migrations.AddField(
            model_name='generation',
            name='llm',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='generations', to='dialogs.llm', verbose_name='LLM'),
        ),
        migrations.AddField(
            model_name='dialog',
            name='llm',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='dialogs', to='dialogs.llm'),
        ),
        migrations.AddField(
            model_name='agent',
            name='llm',
            field=models.ForeignKey(on_delete=dialogs.models.agent.unless_direct, related_name='agents', to='dialogs.llm', verbose_name='LLM'),
        ),
        migrations.AddField(
            model_name='agent',
            name='mcp_servers',
            field=models.ManyToManyField(blank=True, related_name='agents', to='dialogs.mcpserver', verbose_name='MCP servers'),
        ),
        migrations.CreateModel(
            name='SearchText',
            fields=[
                ('message', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='search_text', serialize=False, to='dialogs.message')),
                ('words', models.TextField(blank=True)),
            ],
        ),
        migrations.AddField(
            model_name='message',
            name='course',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='messages', to='dialogs.course'),
        ),
        migrations.AddField(
            model_name='message',
            name='dialog',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='messages', to='dialogs.dialog'),
        ),
        migrations.AddField(
            model_name='message',
            name='parent',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='children', to='dialogs.message'),
        ),
        migrations.AddField(
            model_name='generation',
            name='message',
            field=models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='generation', to='dialogs.message'),
        ),
        migrations.AddField(
            model_name='generation',
            name='prompt_leaf',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='answers', to='dialogs.message'),
        ),
        migrations.AddField(
            model_name='dialog',
            name='current_leaf',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='dialogs.message'),
        ),
        migrations.AddField(
            model_name='messagemark',
            name='message',
            field=models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='mark', to='dialogs.message'),
        ),
        migrations.AddField(
            model_name='prefixnode',
            name='message',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='prefix_nodes', to='dialogs.message'),
        ),
        migrations.AddField(
            model_name='prefixnode',
            name='owner',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='llm',
            name='provider',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='llms', to='dialogs.provider', verbose_name='provider'),
        ),
        migrations.AddField(
            model_name='question',
            name='dialog',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='questions', to='dialogs.dialog'),
        ),
        migrations.AddField(
            model_name='queuedmessage',
            name='dialog',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='queued', to='dialogs.dialog'),
        ),
        migrations.AddField(
            model_name='remediationprompt',
            name='course',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='remediation_prompts', to='dialogs.course'),
        ),
        migrations.AddField(
            model_name='remediationprompt',
            name='dialog',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='remediation_prompts', to='dialogs.dialog'),
        ),
        migrations.AddField(
            model_name='remediationprompt',
            name='message',
            field=models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='remediation_prompt', to='dialogs.message'),
        ),
        migrations.AddField(
            model_name='reminder',
            name='course',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='reminders', to='dialogs.course'),
        ),
        migrations.AddField(
            model_name='reminder',
            name='dialog',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='reminders', to='dialogs.dialog'),
        ),
        migrations.AddField(
            model_name='toolcall',
            name='message',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='calls', to='dialogs.message'),
        ),
        migrations.AddField(
            model_name='toolcall',
            name='result_message',
            field=models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='result_of', to='dialogs.message'),
        ),
        migrations.AddField(
            model_name='question',
            name='tool_call',
            field=models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='question', to='dialogs.toolcall'),
        ),
        migrations.AddField(
            model_name='viewchange',
            name='after',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='health.compactionrun'),
        ),
        migrations.AddField(
            model_name='viewchange',
            name='before',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='health.compactionrun'),
        ),
        migrations.AddField(
            model_name='viewchange',
            name='by',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='viewchange',
            name='course',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='view_changes', to='dialogs.course'),
        ),
        migrations.AddField(
            model_name='clientconversation',
            name='api_key',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='conversations', to='dialogs.apikey'),
        ),
        migrations.AddConstraint(
            model_name='autonomousrun',
            constraint=models.UniqueConstraint(condition=models.Q(('ended_at', None)), fields=('dialog',), name='one_autonomous_run_at_a_time'),
        ),
        migrations.AddConstraint(
            model_name='course',
            constraint=models.UniqueConstraint(fields=('dialog', 'number'), name='course_number_once'),
        ),
        migrations.AddConstraint(
            model_name='message',
            constraint=models.UniqueConstraint(fields=('dialog', 'seq'), name='message_seq_once'),
        ),
        migrations.AddIndex(
            model_name='generation',
            index=models.Index(fields=['dialog', 'status'], name='generation_running'),
        ),
        migrations.AddConstraint(
            model_name='generation',
            constraint=models.UniqueConstraint(fields=('course', 'number'), name='generation_number_once'),
        ),
        migrations.AddIndex(
            model_name='dialog',
            index=models.Index(fields=['owner', '-active_at'], name='dialog_list'),
        ),
        migrations.AddIndex(
            model_name='dialog',
            index=models.Index(condition=models.Q(('wake_seq__gt', models.F('handled_seq'))), fields=['lease_until'], name='dialog_due'),
        ),
        migrations.AddConstraint(
            model_name='prefixnode',
            constraint=models.UniqueConstraint(fields=('owner', 'sha256', 'message'), name='prefix_node_once'),
        ),
        migrations.AddConstraint(
            model_name='llm',
            constraint=models.UniqueConstraint(fields=('provider', 'model_id'), name='llm_once_per_provider'),
        ),
        migrations.AddConstraint(
            model_name='reminder',
            constraint=models.UniqueConstraint(fields=('dialog', 'number'), name='reminder_number_once'),
        ),
        migrations.AddConstraint(
            model_name='toolcall',
            constraint=models.UniqueConstraint(fields=('message', 'position'), name='tool_call_position_once'),
        ),
        migrations.AddIndex(
            model_name='question',
            index=models.Index(fields=['dialog', 'status'], name='question_pending'),
        ),
        migrations.RunPython(make_index, drop_index),
    ]
