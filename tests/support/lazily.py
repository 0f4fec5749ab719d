"""Packages that take seconds to import, imported by the first test that uses one: every worker collects every test."""

from typing import Any

import pytest


class Lazily:
    """A package or module by its name; a test that uses one that is not installed is skipped."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("_") and attribute != "__version__":
            raise AttributeError(attribute)  # pytest asks everything in a module whether it is a fixture
        return getattr(pytest.importorskip(self._name), attribute)
