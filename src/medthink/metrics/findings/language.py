"""Whether a text is in English: the rules and the lexicon know no other language."""

import re

from medthink.metrics.findings.lexicon import word_set

_WORD = re.compile(r"[^\W\d_]+")
_ENGLISH = word_set(
    "the of and in with is are was were no not to a an on at for by from this there that as or without left right "
    "within showed shows seen noted which be has have"
)
# The commonest words of other languages that do not occur in English reports.
_FOREIGN = (
    word_set(
        "der die das und mit ist im den dem ein eine einer eines kein keine nicht bei von zur zum auf links rechts "
        "beidseits le la les des du de et avec est un une dans sans aux au par sur gauche droite pas ce cette il "
        "el los las y con es en una del por sin se izquierdo derecho izquierda derecha hay lo "
        "di il della del che con gli nel nella non sinistra destra sono per una "
        "da do dos das com sem na no em os esquerda direita uma nao "
        "het een van met en geen links rechts bij niet zijn aan"
    )
    - _ENGLISH
    - {"in", "an", "no", "die"}
)
_FEWEST_WORDS = 4


def is_english(text: str) -> bool:
    """False if the words are clearly of another language; a text too short to tell counts as English."""
    words = [word.lower() for word in _WORD.findall(text)]
    if not words:
        return True
    latin = sum(word.isascii() or word[0] < "ɐ" for word in words)
    if latin * 2 < len(words):
        return False
    english = sum(word in _ENGLISH for word in words)
    foreign = sum(word in _FOREIGN for word in words)
    return len(words) < _FEWEST_WORDS or foreign <= english or foreign < 2
