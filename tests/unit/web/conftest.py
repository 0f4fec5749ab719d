from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from web_pages import make_runs, open_viewer, slug


class Pages(NamedTuple):
    """A viewer and a client of it."""

    viewer: Any
    client: Any

    def at(self, address: str) -> str:
        """The text of a page that must be there; `{name}` stands for a run's name in addresses."""
        answer = self.ask(address)
        assert answer.status_code == 200, answer.text
        return answer.text

    def ask(self, address: str, **options: Any) -> Any:
        names = {run.name: run.slug for run in self.viewer.shelf.runs()}
        return self.client.get(address.format_map(names), **options)


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> Iterator[Pages]:
    root = tmp_path_factory.mktemp("view")
    viewer, client = open_viewer(make_runs(root), root / "cache")
    with client:
        assert slug(viewer, "seeing").startswith("seeing-")
        yield Pages(viewer, client)
