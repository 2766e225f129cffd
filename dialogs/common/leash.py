"""Runs a command that must not outlive its parent: `python leash.py PARENT_PID COMMAND...`

On Linux it asks the kernel to kill it when the parent dies, and becomes the command. Elsewhere it
stays beside the command and watches the parent. Starts in milliseconds: it imports nothing of ours.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time

# This file, for whoever starts it as a program.
LEASH = __file__
# From <sys/prctl.h>; the setting survives exec.
PR_SET_PDEATHSIG = 1
WATCH_SECONDS = 0.5


def become(parent: int, command: list[str]) -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit("The supervisor died meanwhile.")
    os.execvp(command[0], command)  # noqa: S606


def watch(parent: int, command: list[str]) -> int:
    process = subprocess.Popen(command)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _frame: process.send_signal(received))
    while process.poll() is None:
        if os.getppid() != parent:
            process.kill()
        time.sleep(WATCH_SECONDS)
    return process.returncode


def main() -> None:
    parent, command = int(sys.argv[1]), sys.argv[2:]
    if sys.platform == "linux":
        become(parent, command)
    else:
        sys.exit(watch(parent, command))


if __name__ == "__main__":
    main()
