#!/usr/bin/env python
"""Django's command line, with Dominds' settings."""

from __future__ import annotations

from dominds.__main__ import main

if __name__ == "__main__":
    main()
