"""What people see and click that belongs to no other room: the dialog's page, lists, signing in, addresses, and
the socket that keeps pages fresh."""

from __future__ import annotations
