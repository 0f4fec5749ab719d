"""The page that every reader gets beside a list: how to fill it in, and the rubric that judges get too."""

from pathlib import Path

from medthink.judge.rubric import load_rubric


def reading_instructions() -> str:
    """How to fill in a list, then the rubric."""
    page = (Path(__file__).parent / "how_to_read.txt").read_text(encoding="utf-8").strip()
    return f"{page}\n\n{load_rubric().page}\n"
