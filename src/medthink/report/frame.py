"""The frame of every page that opens from disk: style, policy and at most one script, whose hash the policy names."""

from base64 import b64encode
from hashlib import sha256
from string import Template

from medthink.core.markup import Markup, joined
from medthink.report.assets import read_asset

_SCRIPTLESS = "This page holds no script and loads nothing from elsewhere."
_SCRIPTED = "This page loads nothing from elsewhere; its one script sorts and filters tables."


def frame_page(title: str, *, facts: Markup, contents: Markup, body: Markup, script: str = "") -> str:
    """The whole page around these parts."""
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
