"""The page that every reader gets with a list: how to fill it in, and the rubric that judges get too."""

from pathlib import Path
from textwrap import wrap

from medthink.judge.kinds import KINDS
from medthink.judge.rubric import load_rubric

_WIDTH = 120


def reading_instructions() -> str:
    """How to fill in a list, then the rubric."""
    page = (Path(__file__).parent / "how_to_read.txt").read_text(encoding="utf-8").strip()
    return f"{page.replace('{{forms}}', _forms())}\n\n{load_rubric().page}\n"


def _forms() -> str:
    """What to fill in, as a list of forms."""
    forms = {form: text for kind in KINDS.values() for form, text in kind.forms.items()}
    indent = max(map(len, forms)) + 4
    lines = [
        line
        for form, text in forms.items()
        for line in wrap(f"{f'- {form}:':<{indent}}{text}", _WIDTH, subsequent_indent=" " * indent)
    ]
    return "\n".join(lines)
