"""A reply as plain text: typography, emphasis, markup, LaTeX and a model's own marks flattened."""

import re
import unicodedata

# Marks that carry no meaning for us, and the many dashes, quotes and arrows that mean one.
_PLAIN = str.maketrans({
    **dict.fromkeys("*`\u200b\u200c\u200d\u2060\ufeff\ufe0f", None),
    **dict.fromkeys("‐‑‒–—―−", "-"),
    **dict.fromkeys("‘’‚‛´", "'"),
    **dict.fromkeys("“”„‟«»「」『』", '"'),
    **dict.fromkeys("【〔", "["),
    **dict.fromkeys("】〕", "]"),
    **dict.fromkeys("✅✔☑", "✓"),
    **dict.fromkeys("❌✘✖❎", "✗"),
    **dict.fromkeys("→⇒➡➔⟶", "->"),
})  # fmt: skip
_STRUCK = re.compile(r"~~[^~\n]{0,300}~~|<(?:s|del|strike)>[^<]{0,300}</(?:s|del|strike)>", re.IGNORECASE)
# What GLM puts around its answer is a box like LaTeX's; the other marks of this form end turns and messages.
_BOX = re.compile(r"<\|begin_of_box\|>([^<]{0,300})<\|end_of_box\|>|\\fbox\s?\{([^{}\n]{0,300})\}")
_MESSAGE_MARK = re.compile(r"<\|[a-z_]{1,30}\|>")
_SQUARE_TAG = re.compile(r"\[(/?)((?:final_?)?answer)\](?=[^\n]{0,300}\[/|[\s.]|$)", re.IGNORECASE)
_NEW_LINE = re.compile(r"</?(?:p|div|li|ul|ol|h[1-6]|tr|table)(?:\s[^<>]{0,80})?>|<br\s?/?>", re.IGNORECASE)
_EMPHASIS = re.compile(r"</?(?:strong|em|span|mark|code|font|center|big)(?:\s[^<>]{0,80})?>", re.IGNORECASE)
_SHORT_EMPHASIS = re.compile(r"<([biu])>([^<]{0,300})</\1>", re.IGNORECASE)
_LATEX = re.compile(
    r"\\(?:text(?:bf|it|rm|sf|tt)?|math(?:bf|rm|sf|it|tt)|boldsymbol|emph|bf|rm)\s?\{([^{}\n]{0,300})\}"
)
_LATEX_SPACE = re.compile(r"\\[ ,;!](?=\w)")
_PICTOGRAMS = re.compile("[\u2600-\u26ff\u2702-\u2712\u2728-\u27bf\U0001f000-\U0001faff]")
# Cyrillic letters that look like ours, standing alone; a reply that counts in Cyrillic (А, Б, В) means other ones.
_LOOK_ALIKE = re.compile(r"(?<![\w'])[АВСЕ](?=[.):\]]?(?:\s*$|\s*\n|[),;\]]|\.\s|\s\())", re.MULTILINE)
_CYRILLIC_COUNT = re.compile(r"(?<!\w)[БГД](?!\w)")
_LATIN = str.maketrans("АВСЕ", "ABCE")


def make_plain(text: str) -> str:
    """The text with its typography and markup flattened; what is struck out is gone."""
    text = unicodedata.normalize("NFKC", text)
    if "<" in text or "\\" in text or "~~" in text or "[/" in text:
        text = _drop_markup(text)
    text = text.translate(_PLAIN)
    return text if text.isascii() else _read_look_alikes(_PICTOGRAMS.sub("", text))


def _drop_markup(text: str) -> str:
    text = _BOX.sub(lambda match: f"\\boxed{{{match[1] or match[2] or ''}}}", text)
    text = _STRUCK.sub("", _MESSAGE_MARK.sub("", text))
    text = _SHORT_EMPHASIS.sub(r"\2", _SQUARE_TAG.sub(r"<\1\2>", text))
    text = _EMPHASIS.sub("", _NEW_LINE.sub("\n", text))
    # Commands may be nested: \\text{\\textbf{B}}.
    for _ in range(3):
        text = _LATEX.sub(r"\1", text)
    return _LATEX_SPACE.sub(" ", text)


def _read_look_alikes(text: str) -> str:
    if _CYRILLIC_COUNT.search(text):
        return text
    return _LOOK_ALIKE.sub(lambda match: match[0].translate(_LATIN), text)


def flatten(text: str) -> str:
    """The text in the shape that option texts are compared in: lower case, one space between words."""
    return " ".join(fold(text).split())


def fold(text: str) -> str:
    """The text in lower case; British and American spellings, "C. difficile" and "C.difficile" read the same."""
    return _SPELLINGS.sub(lambda match: _SHORT[match[0]], _INITIAL.sub(r"\1.", text.lower()))


_INITIAL = re.compile(r"(?<![a-z.])([a-z])\.\s(?=[a-z]{3})")
_SHORT = {"ae": "e", "oe": "e", "our": "or"}
_SPELLINGS = re.compile(r"(?<=[a-z])ae(?=[cm])|(?<![a-z])oe(?=[ds])|(?<=rh)oe(?=a)|(?<=tum)our")
