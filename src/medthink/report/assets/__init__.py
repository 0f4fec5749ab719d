"""The style sheets and templates of the pages; `tokens.css` defines all colours, sizes and durations.

The web rooms serve the same `tokens.css`.
"""

from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from string import Template

from medthink.core.markup import Markup, joined


def read_asset(name: str) -> str:
    """The text of a file of this folder."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


_SCRIPTLESS = "This page holds no script and loads nothing from elsewhere."
_SCRIPTED = "This page loads nothing from elsewhere; its one script sorts and filters tables."


def frame_page(title: str, *, facts: Markup, contents: Markup, body: Markup, script: str = "") -> str:
    """The complete page around these parts."""
    return Template(read_asset("page.html")).substitute(
        title=joined((title,)),
        policy=f"script-src 'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'; " if script else "",
        script=Markup(f"<script>{script}</script>") if script else "",
        scripted=_SCRIPTED if script else _SCRIPTLESS,
        style=read_asset("tokens.css") + read_asset("page.css"),
        facts=facts,
        contents=contents,
        body=body,
    )
