"""The tables of the dialogs app, one file a noun. Fields and constraints; no rules, no calls."""

from __future__ import annotations

from dialogs.models.agent import Agent
from dialogs.models.api_key import ApiKey
from dialogs.models.client import ClientConversation, PrefixNode
from dialogs.models.dialog import AutonomousRun, Course, Dialog, ViewChange
from dialogs.models.display import CompactionDisplay
from dialogs.models.generation import Blob, Generation
from dialogs.models.llm import LLM, LlmBounds, Provider
from dialogs.models.mcp_server import McpServer
from dialogs.models.message import Message, MessageMark, QueuedMessage, SearchText
from dialogs.models.remediation import RemediationPrompt
from dialogs.models.reminder import Reminder
from dialogs.models.tool_call import Question, ToolCall

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
