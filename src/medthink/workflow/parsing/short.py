"""Lines that are a short statement of one option and nothing else: "Definitely B.", "B it is", "Sin duda, la C."."""

import re

from medthink.workflow.parsing.claims import Options
from medthink.workflow.parsing.phrases import NOT_THIS_BUT

_LEADS = (
    # English
    "so", "then", "well", "definitely", "certainly", "clearly", "surely", "obviously", "undoubtedly", "presumably",
    "no doubt", "without (?:a |any )?doubt", "(?:almost certainly|most probably|most likely|probably|likely)",
    "it's", "it is", "it must be", "it has to be", "it would be", "this is", "that's", "that is",
    "i'm (?:confident|certain|sure)(?: that)?", "i am (?:confident|certain|sure)(?: that)?",
    # German, French
    "definitiv", "eindeutig", "sicher", "ganz klar", "auf jeden fall", "am ehesten", "wahrscheinlich", "es ist",
    "das ist", "ich tippe auf", "certainement", "sans (?:aucun )?doute", "probablement", "c'est", "je dirais",
    # Spanish, Italian, Portuguese, Dutch
    "sin duda", "definitivamente", "seguramente", "probablemente", "es", "la correcta es", "(?:yo )?diría", "elegiría",
    "sicuramente", "certamente", "probabilmente", "è", "direi", "com certeza", "provavelmente", "é", "eu diria",
    "zeker", "waarschijnlijk",
)  # fmt: skip
_LEAD = re.compile(
    rf"(?:(?:(?:{'|'.join(_LEADS)})(?![a-zà-ÿ]),?|{NOT_THIS_BUT})\s{{0,2}}){{0,4}}"
    r"(?:(?:my pick|my vote|ans|dx|gabarito)\s?[:=.-]\s?)?"
    r"(?:(?:肯定|应该|應該|一定)是|おそらく)?"
    r"(?-i:(?:[Tt]he|an?|[Dd]ie|[Dd]er|[Dd]as|[Ll]e|[Ll]a|[Ee]l|[Ii]l|o)\s(?=\w))?"
    r"(?:(?:option|choice|letter|answer|antwort|réponse|lettre|opción|letra|opzione|lettera|opção|alternativa"
    r"|optie|вариант)\s{1,2}|选项|選項|選択肢|보기\s{0,2})?",
    re.IGNORECASE,
)
_TRAIL = re.compile(r"(?:,?\s(?:it is|it's|for sure|definitely|without (?:a )?doubt|ist es)|正确|正確)$", re.IGNORECASE)
_MARKS = " \t\"'()[]{}.,:;!_$#<>。！，"
_LETTER_AND_TEXT = re.compile(r"([A-Za-z])[\s.:)(\]\"',-]{1,4}(.+)")


def read_short(line: str, options: Options) -> frozenset[str] | None:
    """The option that the line states, or None where it says anything beside that."""
    said = line.strip(_MARKS)
    if named := options.spelled(said):
        # An option may itself begin with a word that leads on: "Likely reactive node".
        return named
    said = _TRAIL.sub("", said[_end_of_lead(said) :]).strip(_MARKS)
    if len(said) == 1:
        # A small letter may be a word of its own.
        return frozenset({said} & options.letters) or None
    both = _LETTER_AND_TEXT.fullmatch(said)
    named = options.spelled(said)
    if both and not named:
        named = options.spelled(both[2]) & {both[1].upper()}
    return named or None


def _end_of_lead(said: str) -> int:
    lead = _LEAD.match(said)
    return lead.end() if lead else 0
