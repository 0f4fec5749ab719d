"""What stands right after the words that announce an answer: a letter, an option's text, several, or neither."""

import re
import unicodedata

import msgspec

from medthink.workflow.parsing.phrases import DENIED, NOT_THIS_BUT

# Marks that carry no meaning for us, and the many dashes and quotes that mean one.
_PLAIN = str.maketrans({
    **dict.fromkeys("*`\u200b\u200c\u200d\u2060\ufeff", None),
    **dict.fromkeys("‐‑‒–—―−", "-"),
    **dict.fromkeys("‘’‚‛´", "'"),
    **dict.fromkeys("“”„‟«»「」『』", '"'),
    **dict.fromkeys("【〔", "["),
    **dict.fromkeys("】〕", "]"),
})  # fmt: skip


_FILLING = re.compile(
    r"(?:[\s:=\"'(\[{$<>_#-]|\\(?:text|mathrm|mathbf|textbf)\s?\{|(?-i:[ao] (?=[A-Z](?![A-Za-z])))"
    r"|(?:a |the |la |die |l')?(?:option|choice|letter|answer|diagnosis|antwort|buchstabe|lettre|réponse"
    r"|opción|letra|respuesta|opzione|lettera|risposta|opção|alternativa|resposta|optie|вариант)(?![a-zà-ÿ])"
    r"|(?:is|the|an|most|likely|probable|probably|best|correct|final|either|between|clearly|definitely|indeed|therefore"
    r"|die|der|das|le|la|el|il|ist|est|es|è|é)(?= )|选项|選択肢|選項|보기"
    rf"|{NOT_THIS_BUT}){{0,14}}",
    re.IGNORECASE,
)
_LINE_FILLING = re.compile(
    r"[\s\"'(\[{$<>_#=-]{0,8}(?:\\(?:text|textbf|mathrm|mathbf)\{)?(?:(?:option|choice)\s{1,2}[\"'(\[]?)?",
    re.IGNORECASE,
)
_LETTER = re.compile(r"([A-Za-z])(?![A-Za-zÀ-ɏ0-9])")
_FURTHER = re.compile(
    r"[\s\"')\].(]{0,4}(?:[,:;/&+>|、]|(?<=[\s(])(?:or|and|oder|und|ou|et|o|y|e|of|en|lub|или)\s|或|和|及|または|か)\s{0,2}"
    r"(?:possibly |maybe |perhaps |then |also |option |choice |and |or ){0,2}[\"'(\[]{0,2}([A-Za-z])(?![A-Za-zÀ-ɏ0-9])",
    re.IGNORECASE,
)
_FURTHER_TEXT = re.compile(
    r"[\s,;/()]{0,4}(?:[,;/>]|(?<![a-z])(?:or|and|vs\.?|versus|oder|und|ou|et|o|y|e|或|和))\s{0,2}"
)
_BRACKETED = re.compile(r"[^()\n]{1,200}\((?:option |choice )?([A-Z])\)", re.IGNORECASE)
_SPACED_END = re.compile(r"\s{1,3}(?:[(\[/&+>|=-]|$)|\s*\n")
_REASON = re.compile(
    r"\s{1,2}(?:because|since|due|given|based|as|for|weil|da|denn|aufgrund|car|parce|porque|ya|debido|perché|poiché|pois|omdat)"
    r"(?![a-zà-ÿ])",
    re.IGNORECASE,
)
_CONTINUED = re.compile(
    r"\s{1,2}(?:is|was|are|rather|instead|over|not|although|though|with|which|and|or|but|in|at|on|ist|est|es|è|é|y|e|et|ou|und|oder|입니다|है)(?![a-zà-ÿ])",
    re.IGNORECASE,
)
# "E. coli", "C. difficile": a capital, a full stop and a word in lower case that is not the start of a sentence.
_SPECIES = re.compile(
    r"\.\s{1,2}(?!(?:the|because|this|it|as|since|with|in|there|based|given|i|a|an|and|or)\b)[a-z]{3,}"
)
_AFTER_LETTER = ')]}<>",;:!|/\\$+&。…_'
# In Chinese and Japanese a letter before one of these is part of a name, as in "type B".
_NAME_MARKS = "型族類类細细群"


class Options(msgspec.Struct, frozen=True):
    """The options in the shape that replies are compared in: longest text first."""

    letters: frozenset[str]
    texts: tuple[tuple[str, str], ...]
    longest: int

    @classmethod
    def of(cls, options: dict[str, str]) -> "Options":
        """The options, flattened like the replies."""
        texts = [(letter, _flatten(make_plain(text)).rstrip(" .")) for letter, text in options.items()]
        return cls(
            frozenset(options),
            tuple((letter, text) for letter, text in texts if text),
            max(len(text) for text in options.values()),
        )

    def window(self, plain: str, place: int) -> str:
        """As much of the text from `place` on as a claim can take up."""
        return plain[place : place + self.longest + 120]

    def spelled(self, text: str) -> frozenset[str]:
        """The options whose text is this one."""
        flat = _flatten(text).strip(" .\"'()")
        return frozenset(letter for letter, known in self.texts if known.strip(" .\"'()") == flat)

    def named_by(self, text: str) -> frozenset[str]:
        """The options whose text stands at the start, and ends there: the longest, or all that read the same."""
        flat = _flatten(text.lstrip().partition("\n")[0])
        fitting = [
            (letter, known) for letter, known in self.texts if flat.startswith(known) and _ends_text(flat[len(known) :])
        ]
        longest = max((len(known) for _, known in fitting), default=0)
        if not longest or DENIED.match(flat, longest):
            return frozenset()
        further = _FURTHER_TEXT.match(flat, longest)
        more = self.named_by(flat[further.end() :]) if further else frozenset()
        return more.union(letter for letter, known in fitting if len(known) == longest)


def make_plain(text: str) -> str:
    """The text with its typography flattened: full-width letters, dashes, quotes, emphasis."""
    return unicodedata.normalize("NFKC", text).translate(_PLAIN)


def read_claim(text: str, options: Options, *, is_line: bool = False) -> frozenset[str] | None:
    """The letters that the start of the text names, or None; `is_line`: the text is a line and must be an answer."""
    text = options.window(text, 0)
    filling = (_LINE_FILLING if is_line else _FILLING).match(text)
    rest = text[filling.end() if filling else 0 :]
    named = options.named_by(rest)
    named |= _bracketed(rest, options) if named else frozenset()
    match = _LETTER.match(rest)
    letter = match[1].upper() if match else ""
    # A text that begins like a letter ("C. difficile colitis") is its option, whatever the letter.
    if match is None or letter not in options.letters or named:
        return named or None
    tail = rest[match.end() :]
    own = options.named_by(tail.lstrip(" .:;,)]}\"'-(_"))
    if own:
        # "A sarcoidosis" may be an article and its noun; any other letter with another option's text is two answers.
        is_article = letter == "A" and tail[:1].isspace() and tail.lstrip()[:1].isalpha()
        return frozenset(letter) if letter in own else own if is_article else own | {letter}
    if DENIED.match(tail) or not (
        _ends_letter(tail) or _REASON.match(tail) or (not is_line and _CONTINUED.match(tail))
    ):
        return None
    return frozenset(letter) | _further_letters(tail, options)


def _bracketed(text: str, options: Options) -> frozenset[str]:
    """The letter that stands in brackets behind a text: "Sarcoidosis (A)"."""
    match = _BRACKETED.match(text)
    return frozenset({match[1].upper()} & options.letters) if match else frozenset()


def _further_letters(tail: str, options: Options) -> frozenset[str]:
    """The letters listed after the first: "B or C", "A, D"."""
    letters: set[str] = set()
    place = 0
    while (match := _FURTHER.match(tail, place)) and match[1].upper() in options.letters:
        if not _ends_letter(tail[match.end() : match.end() + 20]):
            break
        letters.add(match[1].upper())
        place = match.end()
    return frozenset(letters)


def _ends_letter(tail: str) -> bool:
    """Whether a letter followed by this stands alone, and is no article, initial or part of a name."""
    if not tail or tail[0] in _AFTER_LETTER:
        return True
    follower = tail[0]
    if follower == ".":
        return not _SPECIES.match(tail)
    if follower in "-'":
        return not tail[1:2].isalnum()
    if follower.isspace():
        return bool(_SPACED_END.match(tail))
    return follower >= "\u2e80" and follower not in _NAME_MARKS


def _ends_text(tail: str) -> bool:
    """Whether an option's text followed by this is all of what was named, not the start of something longer."""
    return not tail or tail[0] in ").,;:!]}\"'\\$|。、" or bool(_SPACED_END.match(tail) or _REASON.match(tail))


def _flatten(text: str) -> str:
    return " ".join(text.lower().split())
