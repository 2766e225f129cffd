"""The one websocket route: watch a dialog."""

from __future__ import annotations

from django.urls import path

from dialogs.consumers import DialogConsumer

websocket_urlpatterns = [path("ws/dialogs/<uuid:dialog_id>/", DialogConsumer.as_asgi())]
