"""Conversations with an assistant made of this project's own documents: a heading is asked about, its section answers.

Real prose with lists, tables and code, in English and Chinese, that changes as rarely as the documents do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

Message = dict[str, str]
_ROOT = Path(__file__).parent.parent
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
ENGLISH = ("README.md", "CONTRIBUTING.md", "docs/architecture.md", "docs/operating.md", "docs/long-running-agents.md")
CHINESE = ("README.zh-Hans.md", "docs/long-running-agents.zh-Hans.md")


def conversation(files: tuple[str, ...], *, answer: int = 1_500) -> list[Message]:
    """A system message, then a question and an answer for each section; `answer` is the most characters of one."""
    asks = "请用几句话说明：{}。我刚接手这个项目，请具体一些。" if files is CHINESE else (
        "Could you tell me about “{}”? I am new to the project, so please be concrete and say what I should try first."
    )  # fmt: skip
    messages = [{"role": "system", "content": "You are a patient assistant who explains a software project."}]
    for title, text in (section for file in files for section in _sections(_ROOT / file)):
        messages.append({"role": "user", "content": asks.format(title)})
        messages.append({"role": "assistant", "content": text[:answer]})
    return messages


def _sections(file: Path) -> Iterator[tuple[str, str]]:
    """Title and text of each section that says something."""
    _, *parts = _HEADING.split(file.read_text())
    for title, text in zip(parts[::2], parts[1::2], strict=True):
        if len(text.strip()) > 200:
            yield title, text.strip()
