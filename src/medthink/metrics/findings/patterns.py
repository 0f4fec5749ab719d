"""Findings that no list of phrases can hold: signal by sequence, and names made by a medical ending."""

import re
from collections.abc import Sequence
from functools import lru_cache

from medthink.metrics.findings.lexicon import word_set

_HIGH = word_set("high higher increased increase bright brighter elevated hyper")
_LOW = word_set("low lower decreased decrease dark darker reduced hypo")
_ABNORMAL = word_set("abnormal altered abnormality")
_MIDDLE = word_set("intermediate isointense")
# What may stand between the adjective and the word "signal": sequences, and words that only grade.
_BETWEEN = word_set(
    "t pd stir flair dwi adc swi gre tirm weighted w wi on and or in / , of the cord marrow muscle fluid relative "
    "intralesional internal heterogeneous heterogeneously homogeneous homogeneously very native in moderately mildly"
)
_LONGEST = 8
_SIGNALS = {
    **dict.fromkeys(_HIGH, "hyperintensity"),
    **dict.fromkeys(_LOW, "hypointensity"),
    **dict.fromkeys(_ABNORMAL, "signal_abnormality"),
    **dict.fromkeys(_MIDDLE, "isointensity"),
}
# Unknown words with these endings name findings: sialadenitis, schwannoma, dactylomegaly, meningocele …
_MEDICAL_ENDING = re.compile(
    r"(?:\w{3,}(?:itis|itides|megaly|cele|celes|ectasia|ectasis|ectases|malacia|penia|plasia|lithiasis|pathy|pathies)"
    r"|\w{4,}(?:oma|omas|omata|osis|oses|stenosis|trophy))$"
)
_PLURALS = (("itides", "itis"), ("ectases", "ectasis"), ("omata", "oma"), ("omas", "oma"), ("oses", "osis"))
_NOT_FINDINGS = word_set(
    "diagnosis diagnoses prognosis prognoses anastomosis anastomoses osmosis hypnosis symbiosis stroma stoma trachoma "
    "homeopathy osteopathy naturopathy physiotherapy leukopenia leucopenia neutropenia thrombocytopenia pancytopenia "
    "lymphopenia cytopenia glaucoma carcinomatosis sarcopenia psychosis neurosis"
)


def signal_finding(words: Sequence[str], place: int) -> tuple[str, int] | None:
    """The finding that a signal description starting here names, and where it ends.

    "low T1 and high T2 signal" is two: low up to "high", high up to the end.
    """
    name = _SIGNALS.get(words[place])
    if name is None:
        return None
    end = None
    for at in range(place + 1, min(place + 1 + _LONGEST, len(words))):
        word = words[at]
        if word == "signal":
            after = at + 2 if words[at + 1 : at + 2] == ["intensity"] else at + 1
            return name, end or after
        if word in _SIGNALS and end is None:
            end = at
        elif word not in _BETWEEN and not word.isdigit():
            return None
    return None


@lru_cache(maxsize=1 << 14)
def named_finding(word: str) -> str | None:
    """The finding that a word names by its ending alone, in the singular."""
    if word in _NOT_FINDINGS or not _MEDICAL_ENDING.match(word):
        return None
    for plural, singular in _PLURALS:
        if word.endswith(plural):
            return word.removesuffix(plural) + singular
    return word.removesuffix("s") if word.endswith("celes") else word.replace("pathies", "pathy")
