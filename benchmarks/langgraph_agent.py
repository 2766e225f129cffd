"""LangGraph's own agent with one tool: a wish as JSON on stdin, how often the tool was called and the last words on
stdout. It runs in an environment of its own, which has langgraph and langchain-openai."""

from __future__ import annotations

import json
import sys

from langchain.agents import create_agent  # type: ignore[import-not-found]
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

wish = json.load(sys.stdin)
read: list[int] = []


@tool
def read_part(part: int) -> str:
    """Reads a part of the document."""
    read.append(part)
    return wish["parts"][part - 1]


model = ChatOpenAI(model=wish["model"], base_url=wish["url"], api_key=wish["key"], max_retries=0, timeout=120)
said = create_agent(model, [read_part]).invoke(
    {"messages": [{"role": "user", "content": wish["task"]}]}, {"recursion_limit": 3 * len(wish["parts"]) + 10}
)
print(json.dumps({"read": read, "text": said["messages"][-1].text}))
