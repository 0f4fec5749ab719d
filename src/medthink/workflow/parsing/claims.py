"""Parsing of what follows the words that announce an answer: a letter, an option's text, several, or neither."""

import re
from typing import NamedTuple

from medthink.workflow.parsing import phrases
from medthink.workflow.parsing.options import REASON, SPACED_END, Options
from medthink.workflow.parsing.phrases import DENIED, NOT_THIS_BUT

_FILLING = re.compile(
    r"(?:[\s:=\"'(\[\]{$<>_#✓-]|\\(?:text|mathrm|mathbf|textbf|boxed)\s?\{|(?-i:[ao] (?=[A-Z](?![A-Za-z])))"
    r"|(?:a |the |la |die |l')?(?:option|choice|letter|answer|diagnosis|antwort|buchstabe|lettre|réponse"
    r"|opción|letra|respuesta|opzione|lettera|risposta|opção|alternativa|resposta|optie|вариант)(?![a-zà-ÿ])"
    r"|(?:is|the|an|most|likely|probable|probably|best|correct|final|either|between|clearly|definitely|indeed"
    r"|therefore|donc|dunque|quindi|also|daher|lautet|die antwort"
    r"|die|der|das|eine?[mnrs]?|le|la|el|il|une?|una|uma?|een|ist|est|es|è|é)(?= )|选项|選択肢|選項|보기"
    r"|,\s?in my (?:opinion|view),|l'(?=[a-zà-ÿ])"
    rf"|{NOT_THIS_BUT}){{0,14}}",
    re.IGNORECASE,
)
_LINE_FILLING = re.compile(
    r"[\s\"'(\[{$<>_#=✓-]{0,8}(?:\\(?:text|textbf|mathrm|mathbf)\{)?(?:(?:option|choice)\s{1,2}[\"'(\[]?)?",
    re.IGNORECASE,
)
_LETTER = re.compile(r"([A-Za-z])(?![A-Za-zÀ-ɏ0-9])")
_FURTHER = re.compile(
    r"[\s\"')\].(]{0,4}(?:(?:->|[,:;/&+>|、])|(?<=[\s(])(?:and/or|or|and|oder|und|ou|et|o|y|e|of|en|lub|или)\s"
    r"|或|和|还是选?|還是選?"
    r"|と|과|와"
    r"|及|または|か)\s{0,2}"
    r"(?:possibly |maybe |perhaps |then |also |option |choice |and "
    r"|or ){0,2}[\"'(\[]{0,2}([A-Za-z])(?![A-Za-zÀ-ɏ0-9])",
    re.IGNORECASE,
)
_BRACKETED = re.compile(r"[^()\n]{1,200}\((?:option |choice )?([A-Z])\)", re.IGNORECASE)
_LETTERED = re.compile(
    r"[^().,;:?\n]{3,60}(?:\((?:option )?(?P<bracketed>[A-Z])\)|->\s?(?:option )?([A-Z]))(?=\s{0,2}(?:[.,;\n]|$))"
)
# "C: chest CT shows …" at the head of a line speaks about a letter, or about something else.
_HEADING = re.compile(r"[)\]\"']{0,2}(?::|\s-)\s{0,2}\S")
# "B rather than C" is all that the line says.
_SET_AGAINST = re.compile(
    r",?\s\(?(?:rather than|instead of|over|and not|not) (?:option )?[A-Z][\s.!)]*$", re.IGNORECASE
)
_GOES_ON = re.compile(r"[)\]\"']{1,2}\s[a-zà-ÿ]")
_BEHIND_BRACKET = re.compile(r"[^()\n]{1,200}\([^()\n]{1,80}\)(\s[a-zà-ÿ].*|\s?[\u3040-\u9fff\uac00-\ud7af].*)")
_EAST_ASIAN = re.compile(r"[)\]]?\s?([\u3040-\u9fff\uac00-\ud7af].*)")
_LONGEST_NAME = 2
# Grounds that name a diagnosis themselves.
_REASON_IS = re.compile(r"\s(?:because|since|as)\s(?:this|it)\s(?:is|was)\s(?:an?\s|the\s)?", re.IGNORECASE)
_CONTINUED = re.compile(
    r"\s{1,2}(?:is|was|are|rather|instead|over|not|although|though|with|which|and|but|in|at|on|ist|est|es|è|é|y|e"
    r"|et|und|richtig|korrekt|wählen|nehmen|sagen|şıkkı\w{0,4}|입니다|です|である|となり|है"
    r"|(?:final )?answer:)(?![a-zà-ÿ])",
    re.IGNORECASE,
)
# "E. coli", "C. difficile": a capital, a full stop and a word in lower case that is not the start of a sentence.
_SPECIES = r"\.\s{0,2}(?!(?:the|because|this|it|as|since|with|in|there|based|given|i|a|an|and|or)\b)[a-z]{3,}"
# "E.g.", "F/u", Italian "E' presente": no letter of its own either.
_NOT_ALONE = re.compile(rf"{_SPECIES}|[./][a-z]|'\s(?!because|since|as|is|due|given|with|and)[a-z]")
# The Turkish "is", and what follows a letter in Korean.
_SUFFIX = re.compile(r"'[dt][ıiuü]r(?![a-zà-ÿ])", re.IGNORECASE)
_AFTER_LETTER = ').]}<>",;:!|/\\$+&。…_✓'
# In Chinese and Japanese a letter before one of these is part of a name, as in "type B".
_NAME_MARKS = "型族類类細细群"


class Claim(NamedTuple):
    """The letters that one statement names, where it ends, and whether it is marked as final."""

    letters: frozenset[str]
    end: int
    is_final: bool = False


def read_claim(text: str, options: Options, *, is_line: bool = False) -> frozenset[str] | None:
    """The letters that the start of the text names, or None; `is_line`: the text is a line and must be an answer."""
    text = options.window(text, 0)
    filling = (_LINE_FILLING if is_line else _FILLING).match(text)
    rest = text[filling.end() if filling else 0 :]
    named = options.named_by(rest)
    if named and is_line and (more := _BEHIND_BRACKET.match(rest)) and not _is_praised(more[1]):
        return None
    named |= _bracketed(rest, options) if named else frozenset()
    match = _LETTER.match(rest)
    letter = match[1].upper() if match else ""
    # A text that begins like a letter ("C. difficile colitis") is its option, whatever the letter.
    if match is None or letter not in options.letters or named:
        return named or _last_lettered(rest, options, is_line=is_line) or None
    return _read_letter(letter, rest[match.end() :], options, is_line=is_line)


def _read_letter(letter: str, tail: str, options: Options, *, is_line: bool) -> frozenset[str] | None:
    """The letters named by one letter and what follows it."""
    behind = tail.lstrip(" .:;,)]}\"'-(_")
    own = options.named_by(behind)
    if not own and options.is_denied(behind):
        return None
    if own:
        # "A sarcoidosis" may be an article and its noun; any other letter with another option's text is two answers.
        is_article = letter == "A" and tail[:1].isspace() and tail.lstrip()[:1].isalpha()
        return frozenset(letter) if letter in own else own if is_article else own | {letter}
    if is_line and _SET_AGAINST.match(tail):
        return frozenset(letter)
    if is_line and (_HEADING.match(tail) or _is_spoken_of(tail, options)):
        return None
    if reason := _REASON_IS.match(tail):
        return options.named_by(tail[reason.end() :]) | {letter}
    goes_on = not is_line and (_CONTINUED.match(tail) or _FURTHER.match(tail))
    if DENIED.match(tail) or not (_ends_letter(tail) or REASON.match(tail) or goes_on):
        return None
    letters, end = _further_letters(tail, options)
    if is_line and letters and tail[end:].strip(" .)]\"'!;:,"):
        return None
    return letters | {letter}


def _is_spoken_of(tail: str, options: Options) -> bool:
    """Whether the line goes on to say something about the letter: "(C) does not fit", "D. Silicosis would …"."""
    if _is_praised(tail.lstrip(")]\"'.")):
        return False
    behind = tail.lstrip(" .:;,)]\"'-(_")
    said = _EAST_ASIAN.match(tail) or _EAST_ASIAN.match(behind, options.end_of_text(behind))
    if said:
        return not phrases.IS_IT.match(said[1])
    return bool(_GOES_ON.match(tail)) or options.begins(behind)


def _is_praised(tail: str) -> bool:
    return any(words.match(tail) for words in (REASON, phrases.PRAISE, phrases.IS_IT))


def _bracketed(text: str, options: Options) -> frozenset[str]:
    """The letter in brackets after a text: "Sarcoidosis (A)"."""
    match = _BRACKETED.match(text)
    return frozenset({match[1].upper()} & options.letters) if match else frozenset()


def _last_lettered(text: str, options: Options, *, is_line: bool) -> frozenset[str]:
    """The letter that the clause ends on, behind other words for its text: "la silicose (D)", "lymphoma -> C"."""
    match = _LETTERED.match(text)
    if match and is_line and len(match[0].split()) > _LONGEST_NAME:
        return frozenset()
    letter = (match["bracketed"] or match[2]) if match else ""
    if match is None or letter not in options.letters or DENIED.search(match[0]) or phrases.DISOWNED.search(match[0]):
        return frozenset()
    return frozenset(letter) if options.resembles(match[0], letter) else frozenset()


def _further_letters(tail: str, options: Options) -> tuple[frozenset[str], int]:
    """The letters listed after the first ("B or C", "A, D"), and where they end."""
    letters: set[str] = set()
    place = 0
    while (match := _FURTHER.match(tail, place)) and match[1].upper() in options.letters:
        if not _ends_letter(tail[match.end() : match.end() + 20]) and not _FURTHER.match(tail, match.end()):
            break
        letters.add(match[1].upper())
        place = match.end()
    return frozenset(letters), place


def _ends_letter(tail: str) -> bool:
    """Whether a letter followed by this stands alone, and is no article, initial or part of a name."""
    if _NOT_ALONE.match(tail):
        return False
    if not tail or tail[0] in _AFTER_LETTER:
        return True
    follower = tail[0]
    if follower in "-'":
        return not tail[1:2].isalnum() or bool(_SUFFIX.match(tail))
    if follower.isspace():
        return bool(SPACED_END.match(tail))
    return follower >= "\u2e80" and follower not in _NAME_MARKS


# The full stop behind an option's letter ends no sentence.
_SENTENCE_END = re.compile(r"(?<!\s[A-Za-z])\.|[!?\n。]")
_CLAUSE_END = re.compile(
    r"[.!?\n,;:。，；、]|(?<![a-z])(?:because|since|so|therefore|thus|hence|but|and)(?![a-z])", re.IGNORECASE
)


def is_disowned(plain: str, place: int) -> bool:
    """Whether the words before a statement show that it is not the reply's own answer."""
    before = plain[max(0, place - 200) : place]
    sentence = _SENTENCE_END.split(before)[-1]
    clause = last_clause(sentence)
    return bool(
        phrases.SUPPOSED.match(sentence)
        or phrases.DISOWNED.search(clause)
        or phrases.OTHERS.search(clause)
        or phrases.TEMPLATE.search(line_before(plain, place))
    )


def line_before(plain: str, place: int) -> str:
    """What comes before on the same line, as far as it may matter."""
    return plain[max(0, place - 100) : place].rpartition("\n")[2]


def last_clause(sentence: str) -> str:
    """What comes after the last mark or word that ends a clause."""
    end = 0
    for match in _CLAUSE_END.finditer(sentence):
        end = match.end()
    return sentence[end:]
