"""A run of autonomous mode: the driver pushes on after each answer until one of four ends."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class AutonomousRun(models.Model):
    class EndedBy(models.TextChoices):
        DONE = "done", _("the agent says it is done")
        LIMIT = "limit", _("the most generations are reached")
        PERSON = "person", _("a person ended it")

    dialog = models.ForeignKey("dialogs.Dialog", on_delete=models.CASCADE, related_name="autonomous_runs")
    goal = models.TextField()
    max_generations = models.PositiveIntegerField()
    # Counted in the transaction that records each generation.
    generations = models.PositiveIntegerField(default=0)
    # The course in which it began.
    first_course = models.PositiveIntegerField()
    started_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    ended_by = models.CharField(max_length=20, choices=EndedBy, blank=True)
    # What the agent said when it called the goal reached.
    summary = models.TextField(blank=True)

    class Meta:
        ordering = ("id",)
        constraints = [
            models.UniqueConstraint(
                fields=["dialog"], condition=models.Q(ended_at=None), name="one_autonomous_run_at_a_time"
            )
        ]

    def __str__(self) -> str:
        return f"run {self.pk}: {self.generations}/{self.max_generations}"
