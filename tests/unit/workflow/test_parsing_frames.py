"""Sentences that state an option, and sentences that do not, with every way of naming it put into each."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from medthink.core.jsonio import read_jsonl
from medthink.models.request import Reply
from medthink.workflow.parsing import parse_answer
from styled_replies import options_of

FRAMES = [line.value for line in read_jsonl(Path(__file__).parent / "reply_frames.jsonl")]


def replies(frame: dict) -> Iterator[tuple[str, str]]:
    """The frame's reply for each way of naming an option: the letter alone, in brackets, before and behind the text."""
    options = options_of(frame)
    for name, letter in (
        ("B", "B"),
        ("(C)", "C"),
        (f"D. {options['D']}", "D"),
        (options["A"], "A"),
        (f"{options['C']} (C)", "C"),
    ):
        yield frame["frame"].format(name), letter


def read(frame: dict, reply: str) -> str | None:
    return getattr(parse_answer(Reply(text=reply), options_of(frame)), "letter", None)


@pytest.mark.parametrize("frame", [one for one in FRAMES if not one["states"]], ids=lambda one: one["frame"])
def test_a_sentence_that_commits_to_nothing_gives_no_letter(frame: dict) -> None:
    assert [reply for reply, _ in replies(frame) if read(frame, reply)] == []


def test_nearly_every_sentence_that_states_an_option_gives_its_letter_and_none_another() -> None:
    stated = [(frame, reply, letter) for frame in FRAMES if frame["states"] for reply, letter in replies(frame)]
    found = [(letter, read(frame, reply)) for frame, reply, letter in stated]
    assert [pair for pair in found if pair[1] not in (None, pair[0])] == []
    # What is left unparsed was measured.
    assert sum(one is None for _, one in found) <= 43
