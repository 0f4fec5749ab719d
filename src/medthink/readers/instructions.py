"""The page that every reader gets beside a list: how to fill it in, and what each word means."""

from pathlib import Path
from string import Template

from medthink.judge.rubric import load_rubric


def reading_instructions() -> str:
    """The page, with the meanings that judges are given too."""
    rubric = load_rubric()
    page = Template((Path(__file__).parent / "how_to_read.txt").read_text(encoding="utf-8"))
    return page.substitute(
        support=rubric.describe_support(),
        critical=rubric.critical,
        error_types=rubric.describe_error_types().replace("_", " "),
        sentences=rubric.describe_sentences(),
        education=rubric.describe_education().replace("_", " "),
    )
