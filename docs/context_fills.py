"""Draws docs/context-fills.svg and its Chinese twin: what happens when a context fills. `python docs/context_fills.py`.

The colours follow the reader's light or dark page; the words are in `WORDS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path

WIDTH, HEIGHT = 860, 470
STYLE = """
text { font: 15px system-ui, "Noto Sans CJK SC", sans-serif; fill: #1f2328; }
.small { font-size: 13px; fill: #59636e; }
.box { fill: #f6f8fa; stroke: #8c959f; stroke-width: 1.5; }
.asks { fill: #ddf4ff; stroke: #0969da; }
.acts { fill: #fff8c5; stroke: #9a6700; }
.new { fill: #dafbe1; stroke: #1a7f37; }
path { fill: none; stroke: #59636e; stroke-width: 1.8; }
.head { fill: #59636e; stroke: none; }
@media (prefers-color-scheme: dark) {
  text { fill: #f0f6fc; }
  .small { fill: #9198a1; }
  .box { fill: #151b23; stroke: #656c76; }
  .asks { fill: #0c2d50; stroke: #4493f8; }
  .acts { fill: #3b2c06; stroke: #d29922; }
  .new { fill: #0f3d1d; stroke: #3fb950; }
  path { stroke: #9198a1; }
  .head { fill: #9198a1; }
}
"""


@dataclass(frozen=True)
class Box:
    """`kind` is a class of `STYLE`; `key` leads to its lines in `WORDS`."""

    key: str
    x: int
    y: int
    width: int
    height: int
    kind: str = ""


@dataclass(frozen=True)
class Arrow:
    """Along these points. `key` leads to the word beside it, at `at`."""

    points: tuple[tuple[int, int], ...]
    key: str = ""
    at: tuple[int, int] = (0, 0)


BOXES = (
    Box("typed", 20, 30, 150, 64),
    Box("fits", 230, 30, 190, 64, "asks"),
    Box("answers", 490, 30, 150, 64),
    Box("meter", 700, 30, 140, 64),
    Box("compacted", 215, 180, 220, 104, "acts"),
    Box("asked", 660, 180, 180, 84, "asks"),
    Box("nothing", 462, 190, 156, 64),
    Box("reminders", 640, 340, 200, 104, "acts"),
    Box("course", 250, 340, 320, 104, "new"),
)
ARROWS = (
    Arrow(((170, 62), (230, 62))),
    Arrow(((420, 62), (490, 62)), "yes", (444, 52)),
    Arrow(((640, 62), (700, 62))),
    Arrow(((310, 94), (310, 180)), "no", (318, 142)),
    Arrow(((370, 180), (370, 94)), "again", (378, 142)),
    Arrow(((770, 94), (770, 180)), "short", (652, 142)),
    Arrow(((660, 222), (618, 222)), "no", (632, 212)),
    Arrow(((750, 264), (750, 340)), "yes", (758, 308)),
    Arrow(((640, 392), (570, 392)), "five", (578, 382)),
    Arrow(((250, 392), (95, 392), (95, 94)), "goes_on", (20, 330)),
)
WORDS: dict[str, dict[str, tuple[str, ...]]] = {
    "context-fills.svg": {
        "title": ("What happens when a context fills",),
        "typed": ("You type, or the", "agent goes on"),
        "fits": ("Is the request below", "80 % of the room?"),
        "answers": ("The model", "answers"),
        "meter": ("Its report sets", "the meter"),
        "compacted": ("The history is compacted", "what you laid down stays", "nothing is deleted; Undo"),
        "asked": ("May the agent write", "reminders, and did", "asking help before?"),
        "nothing": ("Nothing:", "compaction helps"),
        "reminders": ("“Write reminders”", "five prompts at most;", "your words come first"),
        "course": ("A new course", "with reminders, Taskdoc, your", "unanswered words and a handover"),
        "yes": ("yes",),
        "no": ("no",),
        "again": ("three times at most",),
        "short": ("caution, critical",),
        "five": ("still full",),
        "goes_on": ("goes on",),
    },
    "context-fills.zh-Hans.svg": {
        "title": ("上下文占满时会发生什么",),
        "typed": ("你输入，", "或智能体继续"),
        "fits": ("请求低于可用空间的", "80 % 吗？"),
        "answers": ("模型回答",),
        "meter": ("它的报告", "决定仪表"),
        "compacted": ("压缩历史", "你定下的规则保留", "什么都不删除；可以撤销"),
        "asked": ("智能体能写提醒吗？", "以前要求有用吗？"),
        "nothing": ("什么也不做：", "有压缩"),
        "reminders": ("“写下提醒”", "最多五条提示；", "你的话先于它们"),
        "course": ("新的一程", "带上提醒、任务书、", "你尚未得到回答的话和交接"),
        "yes": ("是",),
        "no": ("否",),
        "again": ("最多三次",),
        "short": ("吃紧、告急",),
        "five": ("仍然占满",),
        "goes_on": ("继续",),
    },
}


def drawn(words: dict[str, tuple[str, ...]]) -> str:
    title = escape(words["title"][0])
    parts = [*(_arrow(arrow, words) for arrow in ARROWS), *(_box(box, words[box.key]) for box in BOXES)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}">\n'
        f"<title>{title}</title>\n<style>{STYLE}</style>\n" + "\n".join(parts) + "\n</svg>\n"
    )


def _box(box: Box, lines: tuple[str, ...]) -> str:
    middle, top = box.x + box.width // 2, box.y + box.height // 2 - 11 * (len(lines) - 1) + 5
    said = "".join(
        f'<text class="{"small" if row and len(lines) > 2 else ""}" x="{middle}" y="{top + 22 * row}" '
        f'text-anchor="middle">{escape(line)}</text>'
        for row, line in enumerate(lines)
    )
    shape = f'<rect class="box {box.kind}" x="{box.x}" y="{box.y}" width="{box.width}" height="{box.height}" rx="8"/>'
    return shape + said


def _arrow(arrow: Arrow, words: dict[str, tuple[str, ...]]) -> str:
    (before, there), (x, y) = arrow.points[-2:], arrow.points[-1]
    dx, dy = (there[0] > before[0]) - (there[0] < before[0]), (there[1] > before[1]) - (there[1] < before[1])
    head = [(x, y), (x - 9 * dx - 5 * dy, y - 9 * dy - 5 * dx), (x - 9 * dx + 5 * dy, y - 9 * dy + 5 * dx)]
    line = "M" + " L".join(f"{a} {b}" for a, b in arrow.points)
    tip = " ".join(f"{a},{b}" for a, b in head)
    said = (
        f'<text class="small" x="{arrow.at[0]}" y="{arrow.at[1]}">{escape(words[arrow.key][0])}</text>'
        if arrow.key
        else ""
    )
    return f'<path d="{line}"/><polygon class="head" points="{tip}"/>{said}'


if __name__ == "__main__":
    for name, found in WORDS.items():
        (Path(__file__).parent / name).write_text(drawn(found), encoding="utf-8")
