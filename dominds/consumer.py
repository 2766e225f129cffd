"""Celery's consumer, with what it lacks when Redis dies under it."""

from __future__ import annotations

from celery.worker.consumer import Consumer as CelerysConsumer
from kombu.common import ignore_errors


class Consumer(CelerysConsumer):
    def on_connection_error_after_connected(self, exc: Exception) -> None:
        """Close the channel once more than Celery does, and first.

        While a reply is awaited on it, closing a channel of a lost connection fails halfway. Celery's next try finds
        the connection taken apart, and ends the worker: it takes no turn any more until its last one has ended.
        """
        if self.task_consumer:
            ignore_errors(self.connection, self.task_consumer.channel.close)
        super().on_connection_error_after_connected(exc)
