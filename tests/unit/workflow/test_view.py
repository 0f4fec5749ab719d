import pytest

from medthink.core.errors import UsageError
from medthink.workflow.condition import Condition
from medthink.workflow.view import Cues, expert_cues, show_under_condition
from scripted_case import make_question, make_reference

QUESTION = make_question()


def slots(condition: Condition, question=QUESTION, donor=None) -> list[int]:
    return [image.slot for image in show_under_condition(condition, question, donor).question.images]


def test_the_default_shows_everything_as_it_is() -> None:
    shown = show_under_condition(Condition(), QUESTION)
    assert shown.question.history == QUESTION.history
    assert shown.question.options == QUESTION.options
    assert shown.letters == {letter: letter for letter in "ABCDE"}
    assert shown.positions == (0, 1, 2, 3, 4)
    assert [image.read() for image in shown.question.images] == [image.read() for image in QUESTION.images]


def test_images_are_chosen_then_ordered() -> None:
    assert slots(Condition(image_share=0.4)) == [1, 2]
    assert slots(Condition(image_share=0.4, image_order="reversed")) == [2, 1]
    assert slots(Condition(image_share=0.6, image_choice="spread")) == [1, 3, 5]
    assert slots(Condition(image_share=0)) == []
    seeded = Condition(image_share=0.8, image_order="seeded", seed=3)
    assert sorted(slots(seeded)) == [1, 2, 3, 4]
    assert len({tuple(slots(Condition(image_order="seeded", seed=seed))) for seed in range(30)}) > 20


def test_hidden_parts_are_gone() -> None:
    shown = show_under_condition(Condition(show_history=False, show_options=False), QUESTION)
    assert shown.question.history == ""
    assert shown.question.options == {}
    assert shown.letters == {}
    assert shown.original(None) is None


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5, 6, "seeded", "as_is"])
def test_letters_lead_back_to_the_same_text(order: object) -> None:
    shown = show_under_condition(Condition(option_order=order), QUESTION)
    assert list(shown.question.options) == list("ABCDE")
    for letter, text in shown.question.options.items():
        assert QUESTION.options[shown.original(letter)] == text


def test_rotations_put_every_option_on_every_letter() -> None:
    orders = ["as_is", 1, 2, 3, 4]
    places = [show_under_condition(Condition(option_order=order), QUESTION).letters for order in orders]
    for letter in "ABCDE":
        assert {place[letter] for place in places} == set("ABCDE")
    assert places[1] == {"A": "E", "B": "A", "C": "B", "D": "C", "E": "D"}


def test_seeded_orders_depend_on_the_case_and_the_seed_alone() -> None:
    condition = Condition(option_order="seeded", image_order="seeded", seed=5)
    other = make_question(history="Another history.")
    here, again = show_under_condition(condition, QUESTION), show_under_condition(condition, make_question())
    assert (here.letters, here.positions) == (again.letters, again.positions)
    assert show_under_condition(condition, QUESTION).letters != show_under_condition(condition, other).letters
    hidden = Condition(option_order="seeded", image_order="seeded", seed=5, show_history=False)
    assert show_under_condition(hidden, QUESTION).letters == show_under_condition(condition, QUESTION).letters


def test_swapped_images_are_the_donors() -> None:
    donor = make_question(3, prefix="other", history="Other.")
    shown = show_under_condition(Condition(swap_images=True, image_share=0.6), QUESTION, donor)
    assert [image.id for image in shown.question.images] == ["other1", "other2"]
    assert shown.question.history == QUESTION.history
    assert shown.question.options == QUESTION.options


def test_a_donor_is_due_exactly_when_images_are_swapped() -> None:
    with pytest.raises(UsageError):
        show_under_condition(Condition(swap_images=True), QUESTION)
    with pytest.raises(UsageError):
        show_under_condition(Condition(), QUESTION, QUESTION)


@pytest.mark.parametrize(
    ("fields", "captions"),
    [
        ({}, ("caption 1", "caption 2", "caption 3", "caption 4", "caption 5")),
        ({"image_share": 0.4}, ("caption 1", "caption 2")),
        ({"image_share": 0.4, "image_order": "reversed"}, ("caption 2", "caption 1")),
        ({"image_share": 0.6, "image_choice": "spread"}, ("caption 1", "caption 3", "caption 5")),
        ({"image_share": 0}, ()),
    ],
)
def test_expert_findings_are_those_of_the_images_shown(fields: dict, captions: tuple) -> None:
    condition = Condition(findings="expert", **fields)
    cues = expert_cues(make_reference(), condition, show_under_condition(condition, QUESTION))
    assert cues == Cues(findings=captions, summary=None)


def test_expert_findings_follow_positions_where_slots_have_gaps() -> None:
    question = make_question()
    gapped = type(question)(question.history, question.images[1:4], question.options)
    condition = Condition(findings="expert", image_order="reversed")
    cues = expert_cues(make_reference(3), condition, show_under_condition(condition, gapped))
    assert cues.findings == ("caption 3", "caption 2", "caption 1")


def test_cues_hold_only_what_the_condition_asks_for() -> None:
    condition = Condition(findings="self", summary="expert")
    cues = expert_cues(make_reference(), condition, show_under_condition(condition, QUESTION))
    assert cues == Cues(findings=None, summary="expert summary")


def test_blind_conditions_cannot_have_cues() -> None:
    condition = Condition(findings="self")
    with pytest.raises(UsageError, match="unaided"):
        expert_cues(make_reference(), condition, show_under_condition(condition, QUESTION))


def test_printing_a_shown_image_tells_no_name() -> None:
    shown = show_under_condition(Condition(), QUESTION)
    assert "own1" not in repr(shown)
    assert "case00001" not in str(shown.question.images[0])
