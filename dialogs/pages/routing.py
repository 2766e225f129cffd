"""The websocket routes: watch a dialog, or the list. Whoever knocks elsewhere is turned away; Channels would raise."""

from __future__ import annotations

from channels.security.websocket import WebsocketDenier
from django.urls import path, re_path

from dialogs.pages.consumers import DialogConsumer, ListConsumer

websocket_urlpatterns = [
    path("ws/dialogs/", ListConsumer.as_asgi()),
    path("ws/dialogs/<uuid:dialog_id>/", DialogConsumer.as_asgi()),
    re_path("", WebsocketDenier.as_asgi()),
]
