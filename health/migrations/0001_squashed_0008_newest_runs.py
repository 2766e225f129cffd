"""The tables of health as they were on 2026-11-22, in one step. An installation of that day has the replaced ones."""

import django.core.validators
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    replaces = [
        ("health", "0001_initial"),
        ("health", "0002_compaction"),
        ("health", "0003_labels"),
        ("health", "0004_learning"),
        ("health", "0005_event_owner"),
        ("health", "0006_what_if"),
        ("health", "0007_figures"),
        ("health", "0008_newest_runs"),
    ]

    dependencies = [
        ('dialogs', '0001_squashed_0003_marks_and_limits'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='HealthReading',
            fields=[
                ('generation', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='reading', serialize=False, to='dialogs.generation', verbose_name='generation')),
                ('level', models.CharField(choices=[('healthy', 'healthy'), ('caution', 'caution'), ('critical', 'critical'), ('unknown', 'unknown')], max_length=20, verbose_name='level')),
                ('reason', models.CharField(blank=True, choices=[('usage_unavailable', 'The provider sent no usage.'), ('model_limit_unavailable', "The model's context window is not known.")], max_length=40, verbose_name='reason')),
                ('prompt_tokens', models.PositiveIntegerField(null=True, verbose_name='prompt tokens')),
                ('context_window', models.PositiveIntegerField(null=True, verbose_name='context window')),
                ('window_source', models.CharField(blank=True, max_length=20, verbose_name='where the window was read')),
                ('optimal_max_tokens', models.PositiveIntegerField(null=True, verbose_name='caution above')),
                ('optimal_configured', models.BooleanField(default=False, verbose_name='caution is configured')),
                ('critical_max_tokens', models.PositiveIntegerField(null=True, verbose_name='critical above')),
                ('critical_configured', models.BooleanField(default=False, verbose_name='critical is configured')),
                ('hard_util', models.FloatField(null=True, verbose_name='share of the window')),
                ('optimal_util', models.FloatField(null=True, verbose_name='share of the caution ceiling')),
                ('read_at', models.DateTimeField(auto_now_add=True, verbose_name='read at')),
            ],
            options={
                'verbose_name': 'health reading',
                'verbose_name_plural': 'health readings',
                'ordering': ('generation_id',),
            },
        ),
        migrations.CreateModel(
            name='LlmCalibration',
            fields=[
                ('llm', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='calibration', serialize=False, to='dialogs.llm', verbose_name='LLM')),
                ('samples', models.JSONField(default=list, verbose_name='samples')),
                ('updated_at', models.DateTimeField(auto_now=True, verbose_name='updated at')),
            ],
            options={
                'verbose_name': 'calibration of an LLM',
                'verbose_name_plural': 'calibrations of LLMs',
            },
        ),
        migrations.CreateModel(
            name='LlmPrice',
            fields=[
                ('llm', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='price', serialize=False, to='dialogs.llm', verbose_name='LLM')),
                ('per_million', models.DecimalField(decimal_places=4, help_text='Of a million, in whatever currency you reckon.', max_digits=12, validators=[django.core.validators.MinValueValidator(0)], verbose_name='price of prompt tokens')),
            ],
            options={
                'verbose_name': 'price of an LLM',
                'verbose_name_plural': 'prices of LLMs',
            },
        ),
        migrations.CreateModel(
            name='CompactionRun',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('turn', models.PositiveIntegerField()),
                ('through_seq', models.PositiveIntegerField()),
                ('trigger', models.CharField(choices=[('pre_request', 'before sending'), ('tool_result', "a tool's result"), ('stream', 'while answering'), ('overflow', 'the provider refused the prompt'), ('manual', 'by hand'), ('reset', 'reset by hand')], max_length=20, verbose_name='trigger')),
                ('status', models.CharField(choices=[('queued', 'queued'), ('running', 'running'), ('draft', 'draft'), ('applied', 'applied'), ('skipped', 'skipped'), ('failed', 'failed'), ('cancelled', 'cancelled'), ('undone', 'undone')], default='queued', max_length=20, verbose_name='status')),
                ('focus', models.TextField(blank=True)),
                ('up_to_seq', models.PositiveIntegerField(blank=True, null=True)),
                ('is_draft', models.BooleanField(default=False)),
                ('draft_until', models.DateTimeField(blank=True, null=True)),
                ('chain', models.JSONField(default=list, verbose_name='chain')),
                ('limit_tokens', models.PositiveIntegerField(verbose_name='limit in tokens')),
                ('reserve_tokens', models.PositiveIntegerField(default=0, verbose_name='tokens kept for the answer')),
                ('limit_trace', models.JSONField(default=list)),
                ('claim_token', models.PositiveBigIntegerField(default=0)),
                ('claimed_until', models.DateTimeField(blank=True, null=True)),
                ('cancel_requested', models.BooleanField(default=False)),
                ('steps', models.JSONField(default=list)),
                ('phase', models.CharField(blank=True, max_length=40)),
                ('tokens_now', models.PositiveIntegerField(blank=True, null=True)),
                ('priority', models.PositiveSmallIntegerField(blank=True, null=True)),
                ('priority_area', models.CharField(blank=True, max_length=80)),
                ('estimated_before', models.PositiveIntegerField(blank=True, null=True)),
                ('estimated_after', models.PositiveIntegerField(blank=True, null=True)),
                ('messages_before', models.PositiveIntegerField(blank=True, null=True)),
                ('messages_after', models.PositiveIntegerField(blank=True, null=True)),
                ('counter', models.CharField(blank=True, max_length=60, verbose_name='counted by')),
                ('grade', models.CharField(blank=True, max_length=20, verbose_name='how exact')),
                ('embedder', models.CharField(blank=True, max_length=120, verbose_name='embedder')),
                ('coherence', models.FloatField(blank=True, null=True, verbose_name='coherence')),
                ('reward', models.FloatField(blank=True, null=True, verbose_name='reward')),
                ('recovered', models.CharField(blank=True, max_length=20, verbose_name='recovered by')),
                ('view', models.JSONField(default=list)),
                ('removed', models.JSONField(default=list)),
                ('coverage', models.JSONField(default=list)),
                ('losses', models.JSONField(default=list)),
                ('ledger', models.JSONField(default=list)),
                ('warnings', models.JSONField(default=list)),
                ('code', models.CharField(blank=True, max_length=40, verbose_name='code')),
                ('reason', models.TextField(blank=True)),
                ('queued_at', models.DateTimeField(auto_now_add=True, verbose_name='queued at')),
                ('started_at', models.DateTimeField(blank=True, null=True, verbose_name='started at')),
                ('finished_at', models.DateTimeField(blank=True, null=True, verbose_name='finished at')),
                ('course', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='compaction_runs', to='dialogs.course')),
                ('dialog', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='compaction_runs', to='dialogs.dialog', verbose_name='dialog')),
                ('leaf', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='dialogs.message')),
                ('parent_run', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='health.compactionrun')),
                ('requested_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name': 'compaction run',
                'verbose_name_plural': 'compaction runs',
                'ordering': ('id',),
            },
        ),
        migrations.CreateModel(
            name='ContextEvent',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('code', models.CharField(choices=[('TOKEN_LIMIT_EXCEEDED', 'the limit was exceeded'), ('BREAKER_FAILED', 'compaction failed'), ('RECOVERY_TRIGGERED', 'recovery was needed'), ('PRUNER_FAILED', 'the pruning agent failed'), ('WARNING', 'the context was nearly full'), ('OVER_HIT', 'the context was over its limit'), ('RUN_SKIPPED', 'a compaction had nothing to gain'), ('PROVIDER_OVERFLOW', 'the provider refused the prompt'), ('LOOP_DETECTED', 'the agent went round in circles'), ('REPORTED', 'a person reported it')], max_length=40, verbose_name='code')),
                ('estimated', models.PositiveIntegerField(null=True, verbose_name='estimated tokens')),
                ('limit', models.PositiveIntegerField(null=True, verbose_name='limit (tokens)')),
                ('facts', models.JSONField(default=dict)),
                ('happened_at', models.DateTimeField(auto_now_add=True, verbose_name='happened at')),
                ('agent', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='dialogs.agent', verbose_name='agent')),
                ('dialog', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='context_events', to='dialogs.dialog', verbose_name='dialog')),
                ('llm', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='dialogs.llm', verbose_name='LLM')),
                ('owner', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='owner')),
                ('run', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='events', to='health.compactionrun', verbose_name='compaction run')),
            ],
            options={
                'verbose_name': 'context event',
                'verbose_name_plural': 'context events',
                'ordering': ('-id',),
            },
        ),
        migrations.CreateModel(
            name='ContextSettings',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('values', models.TextField(blank=True, verbose_name='values')),
                ('version', models.PositiveIntegerField(default=1, verbose_name='version')),
                ('pruning_agent', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='dialogs.agent', verbose_name='pruning agent')),
            ],
            options={
                'verbose_name': 'compaction settings',
                'verbose_name_plural': 'compaction settings',
            },
        ),
        migrations.CreateModel(
            name='Proposal',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('limit', 'limit'), ('chain', 'order of the chain')], max_length=20, verbose_name='kind')),
                ('status', models.CharField(choices=[('open', 'open'), ('accepted', 'accepted'), ('dismissed', 'dismissed'), ('undone', 'undone')], default='open', max_length=20, verbose_name='status')),
                ('before', models.JSONField(default=dict, verbose_name='before')),
                ('after', models.JSONField(default=dict, verbose_name='after')),
                ('accepted', models.JSONField(blank=True, default=dict, verbose_name='accepted as')),
                ('evidence', models.JSONField(default=dict, verbose_name='evidence')),
                ('expected', models.JSONField(default=dict, verbose_name='expected')),
                ('made_at', models.DateTimeField(auto_now_add=True, verbose_name='made')),
                ('decided_at', models.DateTimeField(blank=True, null=True, verbose_name='decided')),
                ('agent', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='dialogs.agent', verbose_name='agent')),
                ('decided_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='decided by')),
                ('llm', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='dialogs.llm', verbose_name='LLM')),
            ],
            options={
                'verbose_name': 'proposal',
                'verbose_name_plural': 'proposals',
                'ordering': ('-id',),
            },
        ),
        migrations.CreateModel(
            name='SettingsChange',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('changed_at', models.DateTimeField(auto_now_add=True, verbose_name='changed at')),
                ('key', models.CharField(max_length=120, verbose_name='setting')),
                ('before', models.TextField(blank=True, verbose_name='before')),
                ('after', models.TextField(blank=True, verbose_name='after')),
                ('changed_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='changed by')),
            ],
            options={
                'verbose_name': 'settings change',
                'verbose_name_plural': 'settings changes',
                'ordering': ('-id',),
            },
        ),
        migrations.CreateModel(
            name='WhatIf',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('status', models.CharField(choices=[('queued', 'queued'), ('running', 'running'), ('finished', 'finished'), ('failed', 'failed'), ('cancelled', 'cancelled')], default='queued', max_length=20, verbose_name='status')),
                ('dialogs', models.JSONField(default=list)),
                ('rows', models.JSONField(default=list)),
                ('done', models.PositiveIntegerField(default=0)),
                ('claim_token', models.PositiveBigIntegerField(default=0)),
                ('claimed_until', models.DateTimeField(blank=True, null=True)),
                ('asked_at', models.DateTimeField(auto_now_add=True)),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
                ('agent', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='dialogs.agent')),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name': 'what if',
                'verbose_name_plural': 'what if',
                'ordering': ('-id',),
            },
        ),
        migrations.CreateModel(
            name='CleanupTask',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('done', models.JSONField(blank=True, default=list, verbose_name='done')),
                ('opened_at', models.DateTimeField(auto_now_add=True, verbose_name='opened')),
                ('closed_at', models.DateTimeField(blank=True, null=True, verbose_name='closed')),
                ('assignee', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='cleanup_tasks', to=settings.AUTH_USER_MODEL, verbose_name='assigned to')),
                ('closed_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='closed by')),
                ('dialog', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='cleanup_tasks', to='dialogs.dialog', verbose_name='dialog')),
            ],
            options={
                'verbose_name': 'context cleanup task',
                'verbose_name_plural': 'context cleanup tasks',
                'ordering': ('-id',),
                'constraints': [models.UniqueConstraint(condition=models.Q(('closed_at', None)), fields=('dialog',), name='one_open_cleanup_per_dialog')],
            },
        ),
        migrations.AddIndex(
            model_name='compactionrun',
            index=models.Index(fields=['dialog', 'status'], name='compaction_running'),
        ),
        migrations.AddIndex(
            model_name='compactionrun',
            index=models.Index(fields=['dialog', 'queued_at', 'status', 'reward', 'coherence', 'estimated_before', 'estimated_after'], name='compaction_figures'),
        ),
        migrations.AddIndex(
            model_name='compactionrun',
            index=models.Index(fields=['-queued_at', '-id', 'dialog', 'status', 'reward', 'coherence', 'estimated_before', 'estimated_after'], name='compaction_newest'),
        ),
        migrations.AddConstraint(
            model_name='compactionrun',
            constraint=models.UniqueConstraint(condition=models.Q(('status__in', ('queued', 'running'))), fields=('dialog',), name='one_compaction_per_dialog'),
        ),
        migrations.AddIndex(
            model_name='contextevent',
            index=models.Index(fields=['code', 'happened_at', 'agent', 'llm'], name='context_event_counts'),
        ),
        migrations.AddIndex(
            model_name='contextevent',
            index=models.Index(fields=['agent', 'code', 'happened_at'], name='context_event_agent'),
        ),
        migrations.AddIndex(
            model_name='contextevent',
            index=models.Index(fields=['happened_at'], name='context_event_when'),
        ),
        migrations.AddIndex(
            model_name='contextevent',
            index=models.Index(fields=['owner', '-happened_at', '-id'], name='context_event_own'),
        ),
        migrations.AddIndex(
            model_name='contextevent',
            index=models.Index(fields=['owner', 'code', '-happened_at', '-id', 'agent', 'llm'], name='context_event_own_counts'),
        ),
        migrations.AddIndex(
            model_name='contextevent',
            index=models.Index(fields=['owner', 'agent', '-happened_at', '-id'], name='context_event_own_agent'),
        ),
    ]
