"""Celery's consumer, with a fix for a lost Redis connection."""

from __future__ import annotations

from celery.worker.consumer import Consumer as CelerysConsumer
from kombu.common import ignore_errors


class Consumer(CelerysConsumer):
    def on_connection_error_after_connected(self, exc: Exception) -> None:
        """Close the channel first, once more than Celery does.

        Closing a channel of a lost connection fails halfway while it awaits a reply. Without this, Celery's next try
        finds the connection half closed and ends the worker, which takes no more turns while it waits for its last one.
        """
        if self.task_consumer:
            ignore_errors(self.connection, self.task_consumer.channel.close)
        super().on_connection_error_after_connected(exc)
