"""Which model stands behind a name: the same one is reached under several spellings."""

import re

_DATE = re.compile(r"[-@](?:20\d{2}-?[01]\d(?:-?[0-3]\d)?|\d{4}-\d{2}-\d{2})(?=$|[-:])")
_TAIL = re.compile(r"(?:[-:](?:latest|preview|exp|instruct|chat|it))+$")
_MARKS = re.compile(r"[\s_.]+")


def voice_of(name: str) -> str:
    """A model's name without provider, organisation, date, tag and spelling; "" where there is none."""
    last = name.strip().lower().rstrip("/").rpartition("/")[2]
    plain = _MARKS.sub("-", _DATE.sub("", last))
    return _TAIL.sub("", plain)
