"""The one spelling of ROUGE's second column."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medthink.metrics.rouge import Rouge
from medthink.metrics.words import normalise_spelling

BRITISH = {
    "oedema": "edema",
    "oesophageal": "esophageal",
    "haemorrhage": "hemorrhage",
    "anaemia": "anemia",
    "ischaemic": "ischemic",
    "tumours": "tumors",
    "colour": "color",
    "centre": "center",
    "centred": "centered",
    "fibres": "fibers",
    "calibre": "caliber",
    "caecum": "cecum",
    "paediatric": "pediatric",
    "foetal": "fetal",
    "diarrhoea": "diarrhea",
    "aetiology": "etiology",
    "grey": "gray",
    "analysed": "analyzed",
    "catheterisation": "catheterization",
    "visualised": "visualized",
    "metastasised": "metastasized",
    "dyspnoea": "dyspnea",
    "coeliac": "celiac",
    "gynaecological": "gynecological",
    "anaesthesia": "anesthesia",
    "leucocytes": "leukocytes",
    "signalling": "signaling",
    "Œdème": "oedeme",
    "Œdema": "edema",
    "ﬁbrosis": "fibrosis",
    "Crohn’s": "crohn’s",
    "naïve": "naive",
    "T₂": "t2",
    "labelled": "labeled",
    "recanalisation": "recanalization",
    "millimetres": "millimeters",
}


@pytest.mark.parametrize(("written", "folded"), BRITISH.items())
def test_british_becomes_american(written: str, folded: str) -> None:
    assert normalise_spelling(written) == folded


@pytest.mark.parametrize(
    "word",
    [
        "rise",
        "incised",
        "precise",
        "noise",
        "exercise",
        "hour",
        "your",
        "four",
        "contour",
        "fibrosis",
        "central",
        "away",
        "disease",
        "fistula",
        "biopsies",
    ],
)
def test_other_words_stay(word: str) -> None:
    assert normalise_spelling(word) == word


def test_the_second_column_sees_one_word_in_both_spellings() -> None:
    pair = ("Haemorrhagic oedema of the oesophagus", "Hemorrhagic edema of the esophagus")
    assert Rouge(("rouge1",)).score(*pair)["rouge1"].f1 < 0.5
    assert Rouge(("rouge1",)).score(*map(normalise_spelling, pair))["rouge1"].f1 == 1


@given(st.text(alphabet=st.characters(max_codepoint=0x24F), max_size=80))
def test_latin_texts_lose_accents_and_capitals(text: str) -> None:
    folded = normalise_spelling(text)
    assert not any(char.isupper() for char in folded)
    assert not set(folded) & set("àáâãäåçèéêëìíîïñòóôõöùúûüýÿ")
