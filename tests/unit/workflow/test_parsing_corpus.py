"""Replies as models write them, each with the one answer it commits to, or none."""

from collections import Counter
from pathlib import Path

import pytest

import styled_replies
from medthink.core.jsonio import read_jsonl
from medthink.models.request import Reply
from medthink.workflow.ask import Choice, Unparsed
from medthink.workflow.parsing import parse_answer

OPTIONS = styled_replies.OPTIONS | {
    "germs": (
        "Crohn's disease",
        "B-cell lymphoma",
        "C. difficile colitis",
        "E. coli pyelonephritis",
        "Ischaemic colitis",
    ),
    "near": (
        "Tuberculosis",
        "Spinal tuberculosis with abscess",
        "Tuberculosis of the spine",
        "Brucellosis",
        "Metastasis",
    ),
    "bowel": (
        "Acute appendicitis",
        "Crohn disease",
        "Meckel diverticulitis",
        "Mesenteric adenitis",
        "Caecal carcinoma",
    ),
    "twins": ("Sarcoidosis", "sarcoidosis", "Lymphoma", "Silicosis", "Metastasis"),
    "nine": (
        "Sarcoidosis",
        "Tuberculosis",
        "Lymphoma",
        "Brucellosis",
        "Metastasis",
        "Abscess",
        "Haematoma",
        "Amyloidosis",
        "Silicosis",
    ),
}
CORPUS = [line.value for line in read_jsonl(Path(__file__).parent / "replies.jsonl")]


def options_named(name: str) -> dict[str, str]:
    return dict(zip("ABCDEFGHI", OPTIONS[name], strict=False))


@pytest.mark.parametrize("row", CORPUS, ids=lambda row: repr(row["reply"])[:60])
def test_each_reply_commits_to_what_it_says(row: dict) -> None:
    options = options_named(row["options"])
    parsed = parse_answer(Reply(text=row["reply"]), options)
    if row["expect"] is None:
        assert isinstance(parsed, Unparsed)
        assert parsed.reason
    else:
        assert isinstance(parsed, Choice), parsed
        assert (parsed.letter, parsed.text, parsed.mode) == (row["expect"], options[row["expect"]], row["mode"])


def test_the_corpus_is_broad_enough() -> None:
    assert len({row["reply"] for row in CORPUS}) >= 150
    counts = Counter(row["expect"] for row in CORPUS)
    assert counts[None] >= 60
    assert all(counts[letter] >= 12 for letter in "ABCDE")
    assert sum(not row["reply"].isascii() for row in CORPUS) >= 30


def test_an_option_that_begins_like_a_statement_of_another_is_read_as_itself() -> None:
    options = {"A": "Reactive node", "B": "Likely reactive node"}
    assert parse_answer(Reply(text="Likely reactive node."), options).letter == "B"
    assert parse_answer(Reply(text="Probably reactive node."), options).letter == "A"
