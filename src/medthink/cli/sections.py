"""A command whose help shows its many flags under headings."""

from itertools import groupby
from typing import Any

import click


class SectionedCommand(click.Command):
    """A command whose help starts a titled section at each of the flags named."""

    def __init__(self, *args: Any, sections: dict[str, str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._sections = sections

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the flags section by section."""
        title = "Options"
        rows: list[tuple[str, tuple[str, str]]] = []
        for param in self.get_params(ctx):
            title = next((self._sections[name] for name in param.opts if name in self._sections), title)
            if isinstance(param, click.Option) and (record := param.get_help_record(ctx)) is not None:
                rows.append((title, record))
        for heading, listed in groupby(rows, key=lambda row: row[0]):
            with formatter.section(heading):
                formatter.write_dl([record for _, record in listed])
