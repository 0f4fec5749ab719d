"""Edits make a sentence false in one way, twins leave it true, and neither touches what it should not."""

import csv
from pathlib import Path
from random import Random

import pytest

from medthink.judge.edits import EDITS, falsify
from medthink.judge.edits.findings import delete_finding, invent_finding, name_other_options
from medthink.judge.edits.guards import is_stated_in
from medthink.judge.edits.harmless import lengthen_sentence, reword
from medthink.metrics.findings.lexicon import content_words
from medthink.workflow.sentences import split_sentences

SAMPLE = Path(__file__).parents[4] / "shared/data/eurorad_sample.csv"


@pytest.mark.parametrize(
    ("edit", "sentence", "expected"),
    [
        ("side", "Left effusion with a left rib fracture.", "Right effusion with a right rib fracture."),
        ("negation dropped", "There was no effusion or pneumothorax.", "There was effusion and pneumothorax."),
        ("negation dropped", "No evidence of any nodes was seen.", "Evidence of nodes was seen."),
        ("negation dropped", "A mass without calcifications was seen.", "A mass with calcifications was seen."),
        ("negation dropped", "MRI showed no enhancement.", "MRI showed enhancement."),
        ("negation added", "CT showed a large mass in the pelvis.", "CT showed no mass in the pelvis."),
        ("negation added", "There were multiple nodules in the lung.", "There were no nodules in the lung."),
        ("size", "A nodule of 12 mm was seen.", "A nodule of 24 mm was seen."),
        ("size", "The mass measured 47 x 4.9 cm.", "The mass measured 23 x 2.4 cm."),
        ("size", "A 3.5 cm mass was seen.", "A 7.0 cm mass was seen."),
        ("unit", "A nodule of 12 mm was seen.", "A nodule of 12 cm was seen."),
        ("unit", "A mass of 3 x 4 cm was seen.", "A mass of 3 x 4 mm was seen."),
        ("position", "An anterior mediastinal mass was seen.", "A posterior mediastinal mass was seen."),
        ("signal or margin", "It was an ill-defined mass.", "It was a well-defined mass."),
        ("signal or margin", "Hyperintense foci were seen.", "Hypointense foci were seen."),
        ("direction of change", "The nodule grew.", "The nodule shrank."),
        ("level", "A fracture of L1 was seen.", "A fracture of L3 was seen."),
        ("level", "Discitis at L3–L4 was seen.", "Discitis at L1–L2 was seen."),
        ("modality", "A CT showed a mass.", "An MRI showed a mass."),
    ],
)  # fmt: skip
def test_an_edit_changes_one_thing(edit, sentence, expected):
    assert falsify(sentence)[edit] == expected


@pytest.mark.parametrize(
    ("edit", "sentence"),
    [
        ("side", "The left atrium was enlarged."),
        ("side", "A left-to-right shunt was seen."),
        ("side", "The drain was left in place."),
        ("side", "The left and the right kidney were small."),
        ("side", "No effusion was seen on the left."),
        ("side", "The left lung was clear."),
        ("side", "A mass in the left lobe of the liver was seen."),
        ("negation dropped", "There was no effusion but nodes without necrosis."),
        ("negation dropped", "It grew without displacing the vessel."),
        ("negation dropped", "There was no other lesion."),
        ("negation added", "CT showed a mass without fat."),
        ("negation added", "CT showed a 4 cm mass."),
        ("size", "Nodules under 6 mm were seen."),
        ("size", "Nodules of 3–8 mm were seen."),
        ("size", "Slices of 5 mm were made."),
        ("size", "A nodule of 2 mm was seen."),
        ("size", "One nodule of 12 mm and one of 20 mm were seen."),
        ("unit", "A mass of 60 mm was seen."),
        ("position", "A lateral radiograph showed a mass."),
        ("position", "The posterior cerebral artery (PCA) was narrow."),
        ("position", "The lateral ventricle was wide."),
        ("signal or margin", "The mass was hyperintense, its rim hypointense."),
        ("signal or margin", "The mass was not hyperintense."),
        ("signal or margin", "A mixed lytic lesion was seen."),
        ("level", "The mass was bright in T2 signal."),
        ("level", "A fracture of T1 on T2-weighted images was seen."),
        ("modality", "CT showed a hyperdense mass."),
        ("modality", "An MRI of the brain was performed."),
    ],
)
def test_an_edit_that_would_not_surely_change_the_truth_is_not_made(edit, sentence):
    assert edit not in falsify(sentence)


@pytest.mark.parametrize("hedge", ["may", "might", "could", "would"])
def test_what_is_only_thought_possible_or_advised_is_left_alone(hedge):
    assert falsify(f"There {hedge} be a 12 mm nodule in the left lung.") == {}
    assert falsify("A left biopsy is recommended.") == {}


def test_an_edited_claim_that_stands_elsewhere_in_the_case_is_not_made():
    sentence = "A nodule was seen in the left lung."
    assert "side" in falsify(sentence)
    assert "side" not in falsify(sentence, ["Axial CT: a small nodule is seen in the right lung and another below."])
    assert is_stated_in("the left lung nodule", ["A nodule in the left lung"])
    assert not is_stated_in("the left lung nodule", ["A nodule in the right lung"])


def test_the_wrong_option_takes_the_place_of_the_diagnosis():
    options = ("Meningioma", "Glioblastoma", "Metastases")
    assert name_other_options("The findings confirm meningioma.", options, "Meningioma") == [
        "The findings confirm glioblastoma."
    ]
    assert name_other_options("Meningioma is benign.", options, "Meningioma") == ["Glioblastoma is benign."]
    for sentence in ("It is not meningioma.", "Unlike glioblastoma, meningioma is benign.", "A mass was seen.",
                     "Meningioma mimics many.", "Meningiomatosis is rare."):  # fmt: skip
        assert name_other_options(sentence, options, "Meningioma") == []


def test_an_invented_finding_is_of_the_region_and_new_to_the_case():
    texts = "A mass in the lung with a pneumothorax, a rib fracture, pericardial fluid and a hiatal hernia."
    assert invent_finding(texts, Random(0)) == "A filling defect was seen in a segmental pulmonary artery."
    assert invent_finding("It is so.", Random(0)) is None


def test_a_deleted_finding_is_gone_from_the_whole_text_and_leaves_nothing_in_the_air():
    text = ("There is a pleural effusion.", "A mass of 3 cm is seen.", "The pleural effusion is small.")
    assert delete_finding(text, "There is a pleural effusion.") == ("A mass of 3 cm is seen.",)
    hanging = ("There is a pleural effusion.", "It is small.", "A mass of 3 cm is seen.")
    assert delete_finding(hanging, "There is a pleural effusion.") is None
    assert delete_finding(("A mass is seen.",), "There is a pleural effusion.") is None


def test_twins_say_the_same():
    assert reword("CT revealed a mass.") == "CT showed a mass."
    assert reword("There was no evidence of bleeding.") == "There was no sign of bleeding."
    assert reword("There is a mass in the lung.") == "A mass is seen in the lung."
    assert reword("A mass of 3.2 cm.") == "A mass of 32 mm."
    assert reword("A mass of 4 x 15 mm.") == "A mass of 0.4 x 1.5 cm."
    assert reword("The lungs were clear.") is None
    assert lengthen_sentence("CT showed a mass.") == "CT showed a mass, which is worth noting at this point."


@pytest.mark.skipif(not SAMPLE.is_file(), reason="no shared/data/eurorad_sample.csv")
def test_edits_and_twins_apply_to_real_findings_and_never_change_more_than_they_should():
    with SAMPLE.open(encoding="utf-8", newline="") as stream:
        texts = [row["PostDescription"].split("Imaging Findings:")[-1] for row in csv.DictReader(stream)]
    sentences = [text[start:end] for text in texts for start, end in split_sentences(text)]
    edited = [(name, one, false) for one in sentences for name, false in falsify(one).items()]
    assert len({one for _, one, _ in edited}) > 0.35 * len(sentences), "facts: 36 % of sentences"
    assert {name for name, _, _ in edited} == set(EDITS)
    for name, one, false in edited:
        words, others = ([token.word for token in content_words(text)] for text in (one, false))
        assert words != others, (name, one)
        assert abs(len(words) - len(others)) <= 3, (name, one)
    twins = [(one, twin) for one in sentences if (twin := reword(one)) is not None]
    assert len(twins) > 0.5 * len(sentences), "facts: 51 %"
    assert all(one != twin for one, twin in twins)
