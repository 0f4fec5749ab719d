"""The style sheets and templates of the pages; `tokens.css` defines all colours, sizes and durations.

The web rooms serve the same `tokens.css`.
"""

from importlib.resources import files


def read_asset(name: str) -> str:
    """The text of a file of this folder."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
