"""Which diagnosis a free reply names when no options were shown."""

import re

from medthink.workflow.outcome import Choice, Unparsed
from medthink.workflow.parsing import phrases
from medthink.workflow.parsing.claims import make_plain
from medthink.workflow.parsing.objects import find_object

_MAX_NAME = 200
# Where a diagnosis ends and its grounds begin; a full stop after an initial ("E. coli") is no end.
_NAME_END = re.compile(
    r"\n|(?<=\w\w\w)[.;](?:\s|$)|,?\s(?:because|given|based on|due to the|as shown|as seen|since|supported by)(?!\w)",
    re.IGNORECASE,
)
_LEADING = re.compile(r"[\s:=\"'(\[_#-]{0,12}(?:(?:an?|the|most likely|probably|likely) ){0,3}", re.IGNORECASE)


def parse_open(text: str) -> Choice | Unparsed:
    """The one diagnosis that the text commits to, in its own words."""
    form = find_object(text) or {}
    said, explanation = form.get("answer"), form.get("explanation")
    names = [said] if isinstance(said, str) else _names(make_plain(text))
    distinct = {" ".join(name.lower().split()): name.strip() for name in names if name.strip()}
    if not distinct:
        return Unparsed("no diagnosis stated")
    if len(distinct) > 1:
        return Unparsed(f"several diagnoses: {'; '.join(sorted(distinct.values()))[:200]}")
    (name,) = distinct.values()
    return Choice(None, name, explanation if isinstance(explanation, str) else text.strip(), "lenient")


def _names(plain: str) -> list[str]:
    """The diagnoses announced as final, else those announced, else the reply itself where it is but a name."""
    found: dict[bool, list[str]] = {True: [], False: []}
    for match in phrases.ANNOUNCED.finditer(plain):
        name = _name_at(plain, match.end()) if match["link"] else ""
        before = plain[max(0, match.start() - 30) : match.start()].rpartition("\n")[2]
        if name and not phrases.DISOWNED.search(before):
            found[bool(phrases.FINAL.search(before + match[0]))].append(name)
    if found[True] or found[False]:
        return found[True] or found[False]
    whole = plain.strip()
    return [_name_at(whole, 0)] if len(whole) <= _MAX_NAME and "\n" not in whole else []


def _name_at(plain: str, place: int) -> str:
    window = plain[place : place + 2 * _MAX_NAME]
    leading = _LEADING.match(window)
    name = window[leading.end() if leading else 0 :]
    end = _NAME_END.search(name)
    name = name[: end.start() if end else None].strip(" .\"'_)]")
    return name if len(name) <= _MAX_NAME else ""
