"""`manage.py up`: starts the processes of one machine as children, watches them, stops them."""

from __future__ import annotations
