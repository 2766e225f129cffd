"""The tables of the dialogs app, one file a noun. Fields and constraints; no rules, no calls."""

from __future__ import annotations

from dialogs.models.agent import Agent
from dialogs.models.blob import Blob
from dialogs.models.dialog import Course, Dialog
from dialogs.models.generation import Generation
from dialogs.models.llm import LLM, Provider
from dialogs.models.message import Message, QueuedMessage

__all__ = ["LLM", "Agent", "Blob", "Course", "Dialog", "Generation", "Message", "Provider", "QueuedMessage"]
