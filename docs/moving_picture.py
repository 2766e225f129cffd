"""README's moving picture: a talk that is compacted, in a real Dominds, with a stand-in for the model.

What is said stands in moving_picture.json; how large each prompt was, the stand-in counts from what it was sent. The
picture is an animated WebP, whose frames hold only what changed: the browser cuts and encodes, here they are joined.
"""

from __future__ import annotations

import base64
import json
import struct
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

from docs.screenshots import CHROMIUM, HERE, PASSWORD, new_dialog, sign_in
from tests.browser import executable
from tests.e2e import steps
from tests.stack import Stack, running_stack
from tests.standins.compatible import CompatibleStandin, Lists, Reply, text_of
from tests.standins.serving import serving

SIZE, SECONDS, LAST_SECONDS = {"width": 860, "height": 600}, 1.3, 6.0
WINDOW, MODEL = 1_000, "qwen3-8b"
TALK: dict[str, str] = json.loads(Path(__file__).with_suffix(".json").read_text())


def answer(body: Mapping[str, Any]) -> Reply:
    return Reply(text=TALK.get(text_of(body["messages"][-1]), "I see."))


# Of two pictures: the smallest rectangle that holds every change, and the second's part in it. Without a first: all.
# A frame's place is counted in steps of two pixels.
CHANGED = """async ([before, after]) => {
  const read = async data => {
    const image = new Image();
    image.src = "data:image/png;base64," + data;
    await image.decode();
    const canvas = new OffscreenCanvas(image.width, image.height);
    const context = canvas.getContext("2d", {willReadFrequently: true});
    context.drawImage(image, 0, 0);
    const {width, height} = image;
    return {canvas, width, height, pixels: new Uint32Array(context.getImageData(0, 0, width, height).data.buffer)};
  };
  const now = await read(after), was = before ? await read(before) : null;
  let [left, top, right, bottom] = was ? [now.width, now.height, 0, 0] : [0, 0, now.width, now.height];
  for (let at = 0; was && at < now.pixels.length; at++) {
    if (now.pixels[at] === was.pixels[at]) continue;
    const x = at % now.width, y = Math.floor(at / now.width);
    left = Math.min(left, x); right = Math.max(right, x + 1);
    top = Math.min(top, y); bottom = Math.max(bottom, y + 1);
  }
  if (right <= left) [left, top, right, bottom] = [0, 0, 2, 2];
  [left, top] = [left - left % 2, top - top % 2];
  const part = document.createElement("canvas");
  [part.width, part.height] = [right - left, bottom - top];
  part.getContext("2d", {alpha: false}).drawImage(now.canvas, -left, -top);
  const webp = part.toDataURL("image/webp", 0.85).split(",")[1];
  return {left, top, width: part.width, height: part.height, webp};
}"""
PIXELS = (b"ALPH", b"VP8 ", b"VP8L")
# Drawn over what was there, which stays.
IN_PLACE = 0b10


@dataclass(frozen=True, kw_only=True)
class Frame:
    """A whole picture as PNG, and how long it is shown."""

    png: bytes
    seconds: float


def animated(frames: Sequence[Frame], page: Page) -> bytes:
    """One WebP that plays for ever. `page` is any page that may run this script: an empty one."""
    befores = [None, *(frame.png for frame in frames)]
    pairs = zip(befores, frames, strict=False)
    parts = [page.evaluate(CHANGED, [_text(was), _text(frame.png)]) for was, frame in pairs]
    head = struct.pack("<I", 0b10) + _three(parts[0]["width"] - 1) + _three(parts[0]["height"] - 1)
    shown = (_frame(part, frame.seconds) for part, frame in zip(parts, frames, strict=True))
    body = b"".join((_chunk(b"VP8X", head), _chunk(b"ANIM", bytes(6)), *shown))
    return _chunk(b"RIFF", b"WEBP" + body)


def _text(png: bytes | None) -> str:
    return base64.b64encode(png or b"").decode()


def _frame(part: dict[str, Any], seconds: float) -> bytes:
    place = (part["left"] // 2, part["top"] // 2, part["width"] - 1, part["height"] - 1, round(seconds * 1000))
    file = base64.b64decode(part["webp"])
    pixels = [_chunk(kind, data) for kind, data in _chunks(file) if kind in PIXELS]
    return _chunk(b"ANMF", b"".join((*map(_three, place), bytes([IN_PLACE]), *pixels)))


def _chunks(file: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(b"RIFF....WEBP")
    while at < len(file):
        (length,) = struct.unpack_from("<I", file, at + 4)
        yield file[at : at + 4], file[at + 8 : at + 8 + length]
        at += 8 + length + length % 2


def _chunk(kind: bytes, data: bytes) -> bytes:
    return kind + struct.pack("<I", len(data)) + data + bytes(len(data) % 2)


def _three(number: int) -> bytes:
    """In three bytes, the lowest first."""
    return struct.pack("<I", number)[:3]


def hold_the_talk(page: Page, stack: Stack) -> Iterator[Frame]:
    """A frame for each message and each answer, then one of the place where the conversation was compacted."""
    sign_in(page, stack)
    new_dialog(page, stack)
    for text in TALK:
        steps.send(page, text)
        yield Frame(png=page.screenshot(), seconds=SECONDS / 2)
        steps.rest(page)
        page.wait_for_timeout(500)
        yield Frame(png=page.screenshot(), seconds=SECONDS)
    page.evaluate("() => document.activeElement.blur()")
    page.locator(".divider").last.evaluate("divider => divider.scrollIntoView({block: 'center'})")
    page.wait_for_timeout(500)
    yield Frame(png=page.screenshot(), seconds=LAST_SECONDS)


def main() -> None:
    model = CompatibleStandin(window=WINDOW, model=MODEL, lists=Lists.MODELS, reply=answer)
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(model.app()) as address,
        running_stack(Path(folder) / "data", "--no-demo", DOMINDS_ADMIN_PASSWORD=PASSWORD) as stack,
        sync_playwright() as playwright,
    ):
        stack.run_manage("provider", "add", "openai", f"{address}/v1", "--name", "near")
        browser = playwright.chromium.launch(executable_path=executable(), args=CHROMIUM)
        frames = [*hold_the_talk(browser.new_page(viewport=SIZE), stack)]  # type: ignore[arg-type]
        (HERE / "talk.webp").write_bytes(animated(frames, browser.new_page()))


if __name__ == "__main__":
    main()
