"""The tables of dialogs as they were on 2026-11-22, in one step, but for what points at the tables of health.

An installation of that day has the replaced ones, and skips this.
"""

import django.core.validators
import django.db.models.deletion
import uuid
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    replaces = [
        ("dialogs", "0001_initial"),
        ("dialogs", "0002_courses_and_tools"),
        ("dialogs", "0003_marks_and_limits"),
    ]

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Agent',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=120, verbose_name='name')),
                ('slug', models.SlugField(max_length=60, unique=True, verbose_name='slug')),
                ('description', models.CharField(blank=True, max_length=300, verbose_name='description')),
                ('instructions', models.TextField(blank=True, verbose_name='instructions')),
                ('max_output_tokens', models.PositiveIntegerField(blank=True, null=True, validators=[django.core.validators.MinValueValidator(1)], verbose_name='max output tokens')),
                ('context_budget', models.BooleanField(default=False, help_text='Compact the context by itself when it nears the limit, whatever the provider.', verbose_name='context limit')),
                ('context_limit', models.PositiveIntegerField(blank=True, help_text="Empty: the LLM's limit, else the default limit.", null=True, validators=[django.core.validators.MinValueValidator(1)], verbose_name='limit (tokens)')),
                ('is_p1', models.BooleanField(default=False, help_text='A P1 agent may use a fifth more.', verbose_name='P1 agent')),
                ('workspace_enabled', models.BooleanField(default=False, help_text='The agent may list, read and search the files in its own folder, and nothing outside it.', verbose_name='workspace tools')),
                ('is_direct', models.BooleanField(default=False, editable=False)),
                ('is_demo', models.BooleanField(default=False, editable=False, verbose_name='demo')),
                ('enabled', models.BooleanField(default=True, verbose_name='enabled')),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created')),
            ],
            options={
                'verbose_name': 'agent',
                'verbose_name_plural': 'agents',
                'ordering': ('is_demo', 'name'),
            },
        ),
        migrations.CreateModel(
            name='Blob',
            fields=[
                ('sha256', models.CharField(max_length=64, primary_key=True, serialize=False)),
                ('content', models.TextField()),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
        ),
        migrations.CreateModel(
            name='Dialog',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('title', models.CharField(blank=True, max_length=200, verbose_name='title')),
                ('is_client_driven', models.BooleanField(default=False, editable=False)),
                ('titled_by_person', models.BooleanField(default=False)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('active_at', models.DateTimeField(verbose_name='last activity')),
                ('archived_at', models.DateTimeField(blank=True, null=True)),
                ('trashed_at', models.DateTimeField(blank=True, null=True)),
                ('taskdoc', models.TextField(blank=True)),
                ('taskdoc_version', models.PositiveIntegerField(default=1)),
                ('task_snapshot', models.JSONField(blank=True, default=dict, editable=False)),
                ('work_language', models.CharField(choices=[('en', 'English'), ('zh-hans', '简体中文')], default='en', max_length=10)),
                ('last_sent', models.CharField(blank=True, editable=False, max_length=64)),
                ('last_seq', models.PositiveIntegerField(default=0)),
                ('version', models.PositiveBigIntegerField(default=1)),
                ('wake_seq', models.PositiveBigIntegerField(default=0)),
                ('handled_seq', models.PositiveBigIntegerField(default=0)),
                ('lease_token', models.PositiveBigIntegerField(default=0)),
                ('lease_until', models.DateTimeField(blank=True, null=True)),
                ('answer_due', models.BooleanField(default=False)),
                ('place_in_line', models.PositiveIntegerField(blank=True, editable=False, null=True)),
                ('stop_requested', models.BooleanField(default=False)),
                ('paused_by', models.CharField(blank=True, choices=[('', ''), ('person', 'a person'), ('failure', 'a failure'), ('rounds', 'too many tool rounds'), ('full', 'reminders and Taskdoc that fill the window'), ('loop', 'an agent that goes round in circles'), ('limit', 'an autonomous run that used all its generations')], default='', max_length=20)),
                ('unchecked_calls', models.PositiveIntegerField(default=0, editable=False)),
                ('agent', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='dialogs', to='dialogs.agent')),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='dialogs', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ('-active_at',),
            },
        ),
        migrations.CreateModel(
            name='CompactionDisplay',
            fields=[
                ('user', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='compaction_display', serialize=False, to=settings.AUTH_USER_MODEL)),
                ('show', models.BooleanField(default=True, verbose_name='show compactions in the sidebar')),
                ('detail', models.CharField(choices=[('minimal', 'Minimal'), ('normal', 'Normal'), ('detailed', 'Detailed')], default='normal', max_length=20, verbose_name='detail')),
                ('auto_hide_seconds', models.PositiveSmallIntegerField(default=3, validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(10)], verbose_name='hide after (seconds)')),
                ('highlight_p1', models.BooleanField(default=True, verbose_name='highlight P1')),
                ('review_drafts', models.BooleanField(default=False, verbose_name='review summaries before they are applied')),
            ],
        ),
        migrations.CreateModel(
            name='Generation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField()),
                ('turn', models.PositiveIntegerField()),
                ('attempt', models.PositiveIntegerField(default=1, verbose_name='attempt')),
                ('llm_name', models.CharField(max_length=300, verbose_name='name of the LLM')),
                ('status', models.CharField(choices=[('running', 'running'), ('finished', 'finished'), ('stopped', 'stopped'), ('failed', 'failed'), ('interrupted', 'interrupted')], default='running', max_length=20, verbose_name='status')),
                ('fencing_token', models.PositiveBigIntegerField()),
                ('manifest', models.JSONField(default=dict)),
                ('partial_text', models.TextField(blank=True)),
                ('partial_reasoning', models.TextField(blank=True)),
                ('stream_seq', models.PositiveBigIntegerField(default=0)),
                ('prompt_tokens', models.PositiveIntegerField(blank=True, null=True, verbose_name='prompt tokens')),
                ('completion_tokens', models.PositiveIntegerField(blank=True, null=True, verbose_name='completion tokens')),
                ('total_tokens', models.PositiveIntegerField(blank=True, null=True, verbose_name='total tokens')),
                ('cached_tokens', models.PositiveIntegerField(blank=True, null=True, verbose_name='cached tokens')),
                ('usage_raw', models.JSONField(blank=True, null=True)),
                ('finish_reason', models.CharField(blank=True, max_length=60, verbose_name='finish reason')),
                ('error_code', models.CharField(blank=True, max_length=60, verbose_name='error code')),
                ('error_message', models.TextField(blank=True)),
                ('retry_at', models.DateTimeField(blank=True, null=True)),
                ('started_at', models.DateTimeField(auto_now_add=True, verbose_name='started at')),
                ('first_token_at', models.DateTimeField(blank=True, null=True, verbose_name='first token at')),
                ('finished_at', models.DateTimeField(blank=True, null=True, verbose_name='finished at')),
            ],
            options={
                'verbose_name': 'generation',
                'verbose_name_plural': 'generations',
                'ordering': ('id',),
            },
        ),
        migrations.CreateModel(
            name='LLM',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('model_id', models.CharField(max_length=200, verbose_name='model id')),
                ('label', models.CharField(blank=True, max_length=200, verbose_name='label')),
                ('context_length', models.PositiveIntegerField(blank=True, help_text="The model's context window in tokens.", null=True, validators=[django.core.validators.MinValueValidator(1)], verbose_name='context length')),
                ('context_length_source', models.CharField(blank=True, choices=[('server', 'read from the server'), ('file', 'from the catalogue file'), ('admin', 'set by an admin')], editable=False, max_length=20, verbose_name='context length source')),
                ('detected_context_length', models.PositiveIntegerField(blank=True, editable=False, null=True, verbose_name='context length read from the server')),
                ('limits_read_at', models.DateTimeField(blank=True, editable=False, null=True, verbose_name='limits read')),
                ('input_length', models.PositiveIntegerField(blank=True, help_text='Used as the window when there is no context length.', null=True, validators=[django.core.validators.MinValueValidator(1)], verbose_name='input length')),
                ('output_length', models.PositiveIntegerField(blank=True, null=True, validators=[django.core.validators.MinValueValidator(1)], verbose_name='output length')),
                ('optimal_max_tokens', models.PositiveIntegerField(blank=True, help_text='Above this many prompt tokens the level is caution. Empty: 100,000.', null=True, validators=[django.core.validators.MinValueValidator(1)], verbose_name='optimal max tokens')),
                ('critical_max_tokens', models.PositiveIntegerField(blank=True, help_text='Above this many prompt tokens the level is critical. Empty: 90 % of the window.', null=True, validators=[django.core.validators.MinValueValidator(1)], verbose_name='critical max tokens')),
                ('caution_remediation_cadence_generations', models.PositiveIntegerField(blank=True, help_text='While caution lasts, the agent is asked again every so many generations. Empty: 10.', null=True, validators=[django.core.validators.MinValueValidator(1)], verbose_name='caution cadence (generations)')),
                ('tool_calling', models.CharField(choices=[('auto', 'offer tools'), ('refused', 'the server refused tools'), ('off', 'never offer tools')], default='auto', max_length=20, verbose_name='tool calling')),
                ('tool_result_limit_bytes', models.PositiveIntegerField(blank=True, help_text='While caution or critical lasts, larger results are withheld. Empty: 2,000. 0: never withheld.', null=True, verbose_name='largest tool result (bytes)')),
                ('limit_type', models.CharField(blank=True, help_text='One of the LLM types of the compaction settings: its limit holds for agents without one.', max_length=60, verbose_name='limit type')),
                ('source_url', models.URLField(blank=True, max_length=500, verbose_name='source of the limits')),
                ('enabled', models.BooleanField(default=True, verbose_name='enabled')),
                ('origin', models.CharField(choices=[('catalogue', 'built-in catalogue'), ('file', 'override file'), ('admin', 'an admin'), ('demo', 'the demo')], default='admin', editable=False, max_length=20, verbose_name='origin')),
                ('catalogue_values', models.JSONField(blank=True, default=dict, editable=False)),
            ],
            options={
                'verbose_name': 'LLM',
                'verbose_name_plural': 'LLMs',
                'ordering': ('provider__name', 'model_id'),
            },
        ),
        migrations.CreateModel(
            name='McpServer',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.SlugField(max_length=30, unique=True, verbose_name='name')),
                ('transport', models.CharField(choices=[('stdio', 'a program on this machine (stdio)'), ('http', 'an address (streamable HTTP)')], max_length=20, verbose_name='transport')),
                ('command', models.CharField(blank=True, help_text='Program and arguments, quoted as in a shell.', max_length=1000, verbose_name='command')),
                ('url', models.CharField(blank=True, max_length=500, verbose_name='URL')),
                ('secrets_encrypted', models.TextField(blank=True, editable=False)),
                ('timeout_seconds', models.PositiveIntegerField(default=60, validators=[django.core.validators.MinValueValidator(1)], verbose_name='timeout (seconds)')),
                ('enabled', models.BooleanField(default=True, verbose_name='enabled')),
                ('tools', models.JSONField(blank=True, default=list, editable=False)),
                ('tools_read_at', models.DateTimeField(blank=True, editable=False, null=True, verbose_name='tools read')),
                ('problem', models.TextField(blank=True, editable=False, verbose_name='problem')),
            ],
            options={
                'verbose_name': 'MCP server',
                'verbose_name_plural': 'MCP servers',
                'ordering': ('name',),
            },
        ),
        migrations.CreateModel(
            name='Message',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('seq', models.PositiveIntegerField()),
                ('turn', models.PositiveIntegerField()),
                ('role', models.CharField(choices=[('user', 'user'), ('assistant', 'assistant'), ('tool', 'tool'), ('system', 'system')], max_length=20)),
                ('origin', models.CharField(choices=[('typed', 'typed'), ('agent', 'agent'), ('tool', 'tool'), ('remediation', 'remediation'), ('handover', 'handover'), ('push', 'push'), ('client', 'client'), ('continuation', 'continuation')], max_length=20)),
                ('content', models.TextField(blank=True)),
                ('parts', models.JSONField(blank=True, default=dict)),
                ('cut_short', models.BooleanField(default=False)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
            options={
                'ordering': ('seq',),
            },
        ),
        migrations.CreateModel(
            name='MessageMark',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('pinned', models.BooleanField(default=False)),
                ('priority', models.PositiveSmallIntegerField(blank=True, choices=[(1, 'P1'), (2, 'P2'), (3, 'P3')], null=True)),
                ('area', models.CharField(blank=True, max_length=80, verbose_name='area')),
                ('marked_at', models.DateTimeField(auto_now=True)),
            ],
        ),
        migrations.CreateModel(
            name='PrefixNode',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('sha256', models.CharField(max_length=64)),
            ],
            options={
                'ordering': ('id',),
            },
        ),
        migrations.CreateModel(
            name='Provider',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.SlugField(max_length=60, unique=True, verbose_name='name')),
                ('label', models.CharField(blank=True, max_length=120, verbose_name='label')),
                ('kind', models.CharField(choices=[('openai', 'OpenAI-compatible'), ('lmstudio', 'LM Studio'), ('ollama', 'Ollama'), ('llamacpp', 'llama.cpp server'), ('anthropic', 'Anthropic'), ('scripted', 'Scripted (tests)')], max_length=20, verbose_name='kind')),
                ('base_url', models.CharField(max_length=500, verbose_name='base URL')),
                ('api_key_encrypted', models.TextField(blank=True, editable=False)),
                ('api_key_env', models.CharField(blank=True, help_text='Name of an environment variable that holds the key. Used when no key is stored here.', max_length=120, verbose_name='key variable')),
                ('enabled', models.BooleanField(default=True, verbose_name='enabled')),
                ('max_concurrent', models.PositiveSmallIntegerField(blank=True, help_text='So many answers are asked of it at the same time; further ones wait in line. Empty: no limit.', null=True, validators=[django.core.validators.MinValueValidator(1)], verbose_name='requests at once')),
                ('origin', models.CharField(choices=[('catalogue', 'built-in catalogue'), ('file', 'override file'), ('admin', 'an admin'), ('demo', 'the demo')], default='admin', editable=False, max_length=20, verbose_name='origin')),
                ('catalogue_values', models.JSONField(blank=True, default=dict, editable=False)),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created')),
            ],
            options={
                'verbose_name': 'provider',
                'verbose_name_plural': 'providers',
                'ordering': ('name',),
            },
        ),
        migrations.CreateModel(
            name='Question',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('text', models.TextField()),
                ('choices', models.JSONField(blank=True, default=list)),
                ('status', models.CharField(choices=[('pending', 'waiting for an answer'), ('answered', 'answered'), ('withdrawn', 'withdrawn')], default='pending', max_length=20)),
                ('answer', models.TextField(blank=True)),
                ('asked_at', models.DateTimeField(auto_now_add=True)),
                ('answered_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'ordering': ('id',),
            },
        ),
        migrations.CreateModel(
            name='QueuedMessage',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('content', models.TextField()),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
            options={
                'ordering': ('id',),
            },
        ),
        migrations.CreateModel(
            name='RemediationPrompt',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('level', models.CharField(choices=[('caution', 'caution'), ('critical', 'critical')], max_length=20)),
                ('remaining', models.PositiveSmallIntegerField(blank=True, null=True)),
                ('notice', models.TextField(blank=True)),
                ('curated', models.BooleanField(default=None, null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
            options={
                'ordering': ('id',),
            },
        ),
        migrations.CreateModel(
            name='Reminder',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField()),
                ('content', models.TextField()),
                ('position', models.PositiveIntegerField()),
                ('author', models.CharField(choices=[('agent', 'agent'), ('person', 'person')], max_length=20)),
                ('is_continuation', models.BooleanField(default=False)),
                ('version', models.PositiveIntegerField(default=1)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('removed_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'ordering': ('position', 'number'),
            },
        ),
        migrations.CreateModel(
            name='ToolCall',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('position', models.PositiveIntegerField()),
                ('call_id', models.CharField(max_length=200)),
                ('name', models.CharField(max_length=200)),
                ('arguments', models.TextField(blank=True)),
                ('status', models.CharField(choices=[('pending', 'pending'), ('running', 'running'), ('waiting', 'waiting for you'), ('done', 'done'), ('failed', 'failed'), ('interrupted', 'interrupted'), ('withdrawn', 'withdrawn'), ('client', 'made by the client')], default='pending', max_length=20)),
                ('idempotent', models.BooleanField(default=False)),
                ('result', models.TextField(blank=True)),
                ('attempt', models.PositiveIntegerField(default=1)),
                ('most_attempts', models.PositiveIntegerField(default=1)),
                ('retry_at', models.DateTimeField(blank=True, null=True)),
                ('started_at', models.DateTimeField(blank=True, null=True)),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'ordering': ('message_id', 'position'),
            },
        ),
        migrations.CreateModel(
            name='ViewChange',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('why', models.CharField(choices=[('applied', 'applied'), ('undone', 'undone'), ('redone', 'redone')], max_length=20)),
                ('changed_at', models.DateTimeField(auto_now_add=True)),
            ],
            options={
                'ordering': ('id',),
            },
        ),
        migrations.CreateModel(
            name='ApiKey',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=120, verbose_name='name')),
                ('prefix', models.CharField(max_length=20)),
                ('sha256', models.CharField(max_length=64, unique=True)),
                ('scope', models.CharField(choices=[('chat', 'chat, and read'), ('read', 'read only')], default='chat', max_length=20, verbose_name='scope')),
                ('allowed_models', models.JSONField(blank=True, default=list, verbose_name='models')),
                ('notices', models.CharField(choices=[('event', 'status events (Open WebUI shows them)'), ('reasoning', 'as reasoning'), ('content', 'as text of the answer'), ('off', 'not at all')], default='event', max_length=20, verbose_name='notices')),
                ('offers_recall', models.BooleanField(default=False, help_text='Let the model look up what was compacted away. Dominds answers; the client sees nothing of it.', verbose_name='offer recall')),
                ('requests_per_minute', models.PositiveIntegerField(blank=True, help_text="Empty: the server's default.", null=True, validators=[django.core.validators.MinValueValidator(1)], verbose_name='requests per minute')),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created')),
                ('expires_at', models.DateTimeField(blank=True, null=True, verbose_name='expires')),
                ('last_used_at', models.DateTimeField(blank=True, null=True, verbose_name='last used')),
                ('revoked_at', models.DateTimeField(blank=True, null=True, verbose_name='revoked')),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='api_keys', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name': 'API key',
                'verbose_name_plural': 'API keys',
                'ordering': ('-id',),
            },
        ),
        migrations.CreateModel(
            name='ClientConversation',
            fields=[
                ('dialog', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='client', serialize=False, to='dialogs.dialog')),
                ('model', models.CharField(max_length=300)),
                ('instructions', models.TextField(blank=True)),
                ('tools', models.JSONField(blank=True, default=list)),
                ('options', models.JSONField(blank=True, default=dict)),
                ('max_output_tokens', models.PositiveIntegerField(blank=True, null=True)),
                ('offers_recall', models.BooleanField(default=False)),
                ('chat', models.CharField(blank=True, max_length=200)),
            ],
        ),
        migrations.CreateModel(
            name='AutonomousRun',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('goal', models.TextField()),
                ('max_generations', models.PositiveIntegerField()),
                ('generations', models.PositiveIntegerField(default=0)),
                ('first_course', models.PositiveIntegerField()),
                ('started_at', models.DateTimeField(auto_now_add=True)),
                ('ended_at', models.DateTimeField(blank=True, null=True)),
                ('ended_by', models.CharField(blank=True, choices=[('done', 'the agent says it is done'), ('limit', 'the most generations are reached'), ('person', 'a person ended it')], max_length=20)),
                ('summary', models.TextField(blank=True)),
                ('dialog', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='autonomous_runs', to='dialogs.dialog')),
            ],
            options={
                'ordering': ('id',),
            },
        ),
        migrations.CreateModel(
            name='Course',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField()),
                ('opened_by', models.CharField(choices=[('start', 'start'), ('agent', 'agent'), ('user', 'person'), ('auto', 'countdown'), ('recovery', 'recovery')], default='start', max_length=20)),
                ('opened_at', models.DateTimeField(auto_now_add=True)),
                ('carried', models.JSONField(blank=True, default=dict)),
                ('level', models.CharField(default='healthy', max_length=20)),
                ('caution_generations', models.PositiveIntegerField(default=0)),
                ('countdown_turns', models.PositiveSmallIntegerField(default=5)),
                ('due', models.CharField(blank=True, max_length=20)),
                ('guard_held', models.BooleanField(default=False)),
                ('dialog', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='courses', to='dialogs.dialog')),
            ],
            options={
                'ordering': ('number',),
            },
        ),
    ]
