"""How often replies in the styles of today's models are read wrongly, or left unread where a person sees a letter."""

from collections import Counter
from typing import Any

import pytest

from medthink.models.request import Reply
from medthink.workflow.ask import Unparsed
from medthink.workflow.parsing import parse_answer
from styled_replies import REPLIES, half_of, options_of

HALVES = {name: [row for row in REPLIES if half_of(row) == name] for name in ("open", "held")}


def outcome(row: dict[str, Any]) -> str:
    parsed = parse_answer(Reply(text=row["reply"]), options_of(row))
    letter = None if isinstance(parsed, Unparsed) else parsed.letter
    if letter == row["expect"]:
        return "right"
    return "unread" if letter is None else "invented" if row["expect"] is None else "wrong"


def test_the_replies_are_many_and_of_many_kinds() -> None:
    assert len({row["reply"] for row in REPLIES}) >= 600
    assert min(len(half) for half in HALVES.values()) >= 300
    languages = {row["style"] for row in REPLIES} & {"zh", "ja", "ko", "de", "fr", "es", "it", "pt", "nl", "ru", "ar"}
    assert len(languages) >= 10
    assert all(row["expect"] is None or row["expect"] in options_of(row) for row in REPLIES)


# The bounds are what was measured; docs/parsing.md says how.
@pytest.mark.parametrize(("half", "wrong", "unread"), [("open", 0, 8), ("held", 4, 23)])
def test_few_letters_are_wrong_or_invented_and_few_are_left_unread(half: str, wrong: int, unread: int) -> None:
    counts = Counter(outcome(row) for row in HALVES[half])
    print(f"{half}: {dict(counts)}")
    assert counts["wrong"] + counts["invented"] <= wrong
    assert counts["unread"] <= unread
