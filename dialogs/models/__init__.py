"""The tables of the dialogs app. Fields and constraints; no rules, no calls."""

from __future__ import annotations

from dialogs.models.agent import Agent, McpServer
from dialogs.models.dialog import AutonomousRun, ClientConversation, Course, Dialog, PrefixNode, ViewChange
from dialogs.models.llm import LLM, LlmBounds
from dialogs.models.message import Message, MessageMark, QueuedMessage, SearchText
from dialogs.models.person import ApiKey, CompactionDisplay
from dialogs.models.provider import Provider
from dialogs.models.reminder import Reminder
from dialogs.models.turn import Blob, Generation, Question, RemediationPrompt, ToolCall

__all__ = [
    "LLM",
    "Agent",
    "ApiKey",
    "AutonomousRun",
    "Blob",
    "ClientConversation",
    "CompactionDisplay",
    "Course",
    "Dialog",
    "Generation",
    "LlmBounds",
    "McpServer",
    "Message",
    "MessageMark",
    "PrefixNode",
    "Provider",
    "Question",
    "QueuedMessage",
    "RemediationPrompt",
    "Reminder",
    "SearchText",
    "ToolCall",
    "ViewChange",
]
