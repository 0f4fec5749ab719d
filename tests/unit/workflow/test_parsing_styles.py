"""How often replies in the styles of today's models are read wrongly, or left unread where a person sees a letter."""

from collections import Counter
from typing import Any

import pytest

from medthink.models.request import Reply
from medthink.workflow.ask import Unparsed
from medthink.workflow.parsing import parse_answer
from styled_replies import HELD_OUT, REPLIES, options_of

PARTS = {"training": REPLIES, "held out": HELD_OUT}


def outcome(row: dict[str, Any]) -> str:
    parsed = parse_answer(Reply(text=row["reply"]), options_of(row))
    letter = None if isinstance(parsed, Unparsed) else parsed.letter
    if letter == row["expect"]:
        return "right"
    return "unread" if letter is None else "invented" if row["expect"] is None else "wrong"


def test_the_replies_are_many_and_of_many_kinds() -> None:
    rows = [row for part in PARTS.values() for row in part]
    assert len({row["reply"] for row in rows}) >= 1_150
    assert min(len(part) for part in PARTS.values()) >= 300
    languages = {row["style"] for row in HELD_OUT} & {"zh", "ja", "ko", "de", "fr", "es", "it", "pt", "nl", "ru", "ar"}
    assert len(languages) >= 10
    assert all(row["expect"] is None or row["expect"] in options_of(row) for row in rows)


def test_no_reply_is_in_both_parts() -> None:
    assert not {(row["options"], row["reply"]) for row in REPLIES} & {
        (row["options"], row["reply"]) for row in HELD_OUT
    }


# The bounds are what was measured; docs/parsing.md says how.
@pytest.mark.parametrize(("part", "wrong", "unread"), [("training", 0, 38), ("held out", 4, 28)])
def test_few_letters_are_wrong_or_invented_and_few_are_left_unread(part: str, wrong: int, unread: int) -> None:
    counts = Counter(outcome(row) for row in PARTS[part])
    print(f"{part}: {dict(counts)}")
    assert counts["wrong"] + counts["invented"] <= wrong
    assert counts["unread"] <= unread
