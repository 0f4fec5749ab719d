"""The atlas promises that no single sign decides, and that its words, codes and painters all exist."""

import re

import pytest

from medthink.cases.case import MODALITIES
from medthink.cases.check.texts import contains_phrase, normalised_words
from medthink.cases.icd import who_tree
from medthink.phantoms.atlas import families, is_fair, option_sets
from medthink.phantoms.painters import PAINTERS

FAMILIES = sorted(families())


def test_there_are_many_families_of_at_least_eight_diseases():
    assert len(FAMILIES) >= 11
    assert all(len(family.diseases) >= 8 and len(family.axes) == 3 for family in families().values())


@pytest.mark.parametrize("name", FAMILIES)
def test_profiles_are_distinct_and_use_the_values_of_their_axes(name):
    family = families()[name]
    profiles = [disease.profile for disease in family.diseases]
    assert len(set(profiles)) == len(profiles)
    for at, axis in enumerate(family.axes):
        assert {profile[at] for profile in profiles} == set(axis.values)


@pytest.mark.parametrize("name", FAMILIES)
def test_every_view_can_paint_and_word_every_sign(name):
    for axis in families()[name].axes:
        for view in axis.views:
            assert view.painter in PAINTERS
            assert view.modality in MODALITIES
            assert set(view.signs) == set(axis.values)
            placeholders = {
                word for text in (*view.leads, *sum(view.signs.values(), ())) for word in re.findall(r"{(\w+)}", text)
            }
            assert placeholders <= {"side", "mm"}
            assert view.mm > 0 or "mm" not in placeholders


def test_all_nine_modalities_are_used():
    used = {view.modality for family in families().values() for axis in family.axes for view in axis.views}
    assert used == set(MODALITIES)


@pytest.mark.parametrize("name", FAMILIES)
def test_every_icd_category_exists(name):
    for disease in families()[name].diseases:
        assert who_tree().is_category(disease.icd), disease.name


@pytest.mark.parametrize("name", FAMILIES)
def test_in_every_option_set_one_axis_never_decides_and_two_do_not_always(name):
    sets = option_sets(name)
    assert len(sets) >= 20
    assert {disease.name for five in sets for disease in five} == {
        disease.name for disease in families()[name].diseases
    }
    for five in sets:
        for at in range(3):
            signs = [disease.profile[at] for disease in five]
            assert all(signs.count(sign) >= 2 for sign in signs)
        for pair in ((0, 1), (0, 2), (1, 2)):
            assert len({tuple(disease.profile[at] for at in pair) for disease in five}) < 5


def test_a_set_that_one_axis_decides_is_not_fair():
    pool = families()["lung"].diseases
    reticular = [disease for disease in pool if disease.profile[0] == "reticular"]
    other = next(disease for disease in pool if disease.profile[0] == "nodular")
    assert not is_fair((*reticular[:4], other))


@pytest.mark.parametrize("name", FAMILIES)
def test_no_word_of_a_history_names_a_disease_of_its_family(name):
    family = families()[name]
    texts = (*family.history.complaints, *family.history.exams, *family.history.labs, *family.history.pasts)
    spelled = [normalised_words(text) for text in texts]
    for disease in family.diseases:
        assert not any(contains_phrase(text, disease.name) for text in spelled), disease.name
