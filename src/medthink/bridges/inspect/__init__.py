"""Inspect AI, both ways: our tasks for its users, runs as its logs, and its logs as runs."""
