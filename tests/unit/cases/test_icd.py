"""ICD-10 labels against the WHO tree."""

import pytest

from medthink.cases.icd import IcdProblem, chapter_title, code_of, icd_problems, who_tree

LUNG = (
    "Chapter II - Neoplasms",
    "C30-C39 - Malignant neoplasms of respiratory and intrathoracic organs",
    "C34 - Malignant neoplasm of bronchus and lung",
)


def test_valid_labels_have_no_problem() -> None:
    assert icd_problems(*LUNG) == ()
    # Nor have those that differ in capitals and punctuation only.
    assert icd_problems(LUNG[0].replace("Neoplasms", "NEOPLASMS"), LUNG[1], LUNG[2].replace(" of ", ", of ")) == ()


def test_every_category_of_the_tree_agrees_with_all_its_blocks_and_its_chapter() -> None:
    tree = who_tree()

    def label(code: str) -> str:
        return f"{code} - {tree.get_description(code)}"

    categories = [code for code in tree.get_all_codes() if tree.is_category(code)]
    assert len(categories) == 2050
    for category in categories:
        *blocks, chapter = tree.get_ancestors(category)
        for block in blocks:
            assert icd_problems(f"Chapter {label(chapter)}", label(block), label(category)) == (), category


@pytest.mark.parametrize(
    ("labels", "kinds"),
    [
        (("", "", ""), ["missing"] * 3),
        (("Chapter II - Neoplasms", LUNG[1], "c34 - lung"), ["malformed"]),
        (("Chapter 2 - Neoplasms", LUNG[1], LUNG[2]), ["malformed"]),
        (("Chapter XXIII - Neoplasms", LUNG[1], LUNG[2]), ["unknown"]),
        ((LUNG[0], "C30-C38 - Organs", LUNG[2]), ["unknown"]),
        ((LUNG[0], LUNG[1], "C29 - Organs"), ["unknown"]),
        ((LUNG[0], LUNG[1], "C34 - Lung cancer"), ["title"]),
        (("Chapter IX - Diseases of the circulatory system", LUNG[1], LUNG[2]), ["contradiction"]),
        ((LUNG[0], LUNG[1], "I21 - Acute myocardial infarction"), ["contradiction", "contradiction"]),
        (("Chapter IX - Neoplasms", "?", LUNG[2]), ["title", "malformed", "contradiction"]),
    ],
)
def test_each_kind_of_problem(labels: tuple[str, str, str], kinds: list[str]) -> None:
    assert [problem.kind for problem in icd_problems(*labels)] == kinds


def test_a_contradiction_names_the_level_and_both_codes() -> None:
    (problem,) = icd_problems("Chapter I - Certain infectious and parasitic diseases", LUNG[1], LUNG[2])
    assert problem == IcdProblem("contradiction", "ICD Chapter", "C30-C39 is not part of I")


def test_codes_and_titles() -> None:
    assert code_of(LUNG[0], "ICD Chapter") == "II"
    assert code_of("Neoplasms", "ICD Chapter") is None
    assert chapter_title("II") == "Neoplasms"
