"""The tables of the dialogs app, one file a noun. Fields and constraints; no rules, no calls."""

from __future__ import annotations

from dialogs.models.agent import Agent
from dialogs.models.api_key import ApiKey
from dialogs.models.autonomous import AutonomousRun
from dialogs.models.blob import Blob
from dialogs.models.client import ClientConversation, PrefixNode
from dialogs.models.dialog import Course, Dialog
from dialogs.models.display import CompactionDisplay
from dialogs.models.generation import Generation
from dialogs.models.llm import LLM, Provider
from dialogs.models.mcp_server import McpServer
from dialogs.models.message import Message, QueuedMessage
from dialogs.models.message_mark import MessageMark
from dialogs.models.remediation import RemediationPrompt
from dialogs.models.reminder import Reminder
from dialogs.models.search_text import SearchText
from dialogs.models.tool_call import Question, ToolCall
from dialogs.models.view_change import ViewChange
from dialogs.models.window import LlmBounds

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
