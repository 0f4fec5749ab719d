"""The two pages name every column, word and problem that the code knows."""

from pathlib import Path
from typing import get_args

from medthink.judge.judgement import DEFAULT_SIGHT, Judgement
from medthink.judge.kinds import KINDS
from medthink.judge.rubric import DIMENSIONS, ERROR_TYPES, SENTENCE_LABELS, SEVERITIES, SUPPORTS, WEIGHTS
from medthink.readers.lists import COLUMNS
from medthink.readers.readings import UnusedKind

DOCS = Path(__file__).resolve().parents[3] / "docs"


def test_the_table_page_names_every_column_word_and_problem():
    page = (DOCS / "readers-table.md").read_text(encoding="utf-8")
    words = [*COLUMNS, *SUPPORTS, *WEIGHTS, *SEVERITIES, *SENTENCE_LABELS, *get_args(UnusedKind), *ERROR_TYPES]
    assert not [word for word in words if word.replace("_", " ") not in page and word not in page]


def test_the_judging_page_names_every_kind_part_dimension_and_field():
    page = (DOCS / "judging.md").read_text(encoding="utf-8")
    words = [*KINDS, *DIMENSIONS, *ERROR_TYPES, *Judgement.__struct_fields__]
    flat = " ".join(page.split())
    assert not [word for word in words if word.replace("_", " ") not in flat and word not in flat]
    assert ",".join(DEFAULT_SIGHT) in page
