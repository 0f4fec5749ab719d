import msgspec
import pytest

from medthink.core.errors import UsageError
from medthink.workflow.condition import FIELDS, Condition, parse_share
from medthink.workflow.tasks import default_condition, resolve_condition


def test_every_field_changes_the_digest() -> None:
    changed = {
        "image_share": 0.4, "image_choice": "spread", "image_order": "reversed", "swap_images": True,
        "show_history": False, "show_options": False, "option_order": 2, "findings": "expert", "summary": "self",
        "single_call": True, "prompt_set": "brief", "use_schema": False, "image_max_side": 512, "image_max_bytes": 9999,
        "effort": "high", "temperature": 0.5, "max_tokens": 100, "samples": 3, "seed": 7, "model_seed": 0,
        "image_detail": "low",
    }  # fmt: skip
    assert set(changed) == set(Condition.__struct_fields__), "a new field must be tried here"
    digests = {Condition(**{field: value}).digest() for field, value in changed.items()}
    labels = {Condition(**{field: value}).label() for field, value in changed.items()}
    assert len(digests | {Condition().digest()}) == len(changed) + 1
    # A choice rule says nothing where all images are shown; every other field shows in the label.
    assert len(labels) == len(changed)
    assert [name for name in changed if Condition(**{name: changed[name]}).label() == Condition().label()] == [
        "image_choice"
    ]


def test_whole_numbers_and_floats_are_one_condition() -> None:
    assert Condition(image_share=1).digest() == Condition(image_share=1.0).digest()
    assert Condition(temperature=0).digest() == Condition(temperature=0.0).digest()


@pytest.mark.parametrize(("written", "order"), [("0", "as_is"), (0, "as_is"), ("1", 1), (3, 3), ("seeded", "seeded")])
def test_an_order_of_options_may_be_a_rotation_by_any_number_also_as_text(written: str | int, order: str | int) -> None:
    condition = Condition(option_order=written)
    assert condition.option_order == order and condition.digest() == Condition(option_order=order).digest()


def test_label_is_one_line_that_names_the_kind() -> None:
    plain = Condition()
    rich = Condition(
        image_share=0.4, image_choice="spread", findings="expert", summary="self", show_history=False, option_order=3,
        effort="low", temperature=0.5, samples=5, seed=9, model_seed=0,
    )  # fmt: skip
    assert str(plain) == plain.label() == "unaided · 100 % of images"
    assert rich.label() == (
        "expert-cued · 40 % of images (spread) · no history · options rotated by 3 · expert findings · self summary"
        " · effort low · temperature 0.5 · samples 5 · seed 9 · model seed 0"
    )


@pytest.mark.parametrize(
    ("findings", "summary", "is_unaided"),
    [("none", "none", True), ("self", "self", True), ("expert", "none", False), ("none", "expert", False)],
)
def test_expert_words_make_another_kind(findings: str, summary: str, is_unaided: bool) -> None:
    condition = Condition(findings=findings, summary=summary)
    assert condition.is_unaided is is_unaided
    assert condition.kind == ("unaided" if is_unaided else "expert-cued")


@pytest.mark.parametrize(
    "fields",
    [
        {"image_share": 1.01}, {"image_share": -0.1}, {"image_share": float("nan")}, {"temperature": -1},
        {"temperature": float("nan")}, {"samples": 0}, {"max_tokens": 0}, {"seed": -1}, {"model_seed": -1},
        {"option_order": -2}, {"option_order": "odd"}, {"option_order": True},
        {"option_order": "seeded", "show_options": False},
        {"prompt_set": ""}, {"swap_images": True, "findings": "expert"}, {"image_max_side": 0},
        {"swap_images": True, "summary": "expert"},
        {"image_max_bytes": 0},
    ],
)  # fmt: skip
def test_conditions_that_mean_nothing_are_refused(fields: dict) -> None:
    with pytest.raises(UsageError) as caught:
        Condition(**fields)
    assert caught.value.remedy


def test_a_condition_survives_the_disk_and_refuses_unknown_fields() -> None:
    condition = Condition(image_share=0.2, option_order=2, effort="high")
    assert msgspec.json.decode(msgspec.json.encode(condition), type=Condition) == condition
    with pytest.raises(msgspec.ValidationError, match="unknown field"):
        msgspec.json.decode(b'{"image_shares": 0.2}', type=Condition)
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"findings": "guess"}', type=Condition)


@pytest.mark.parametrize(
    ("text", "share"), [("40%", 0.4), ("40 %", 0.4), ("40", 0.4), ("0.4", 0.4), ("1", 1.0), ("1%", 0.01), ("0", 0.0)]
)
def test_shares_are_read(text: str, share: float) -> None:
    assert parse_share(text) == share


@pytest.mark.parametrize("text", ["", "x", "101", "-1", "120%", "nan", "inf"])
def test_no_share(text: str) -> None:
    with pytest.raises(UsageError):
        parse_share(text)


def test_every_field_stands_in_the_table_in_the_same_order() -> None:
    assert [field.name for field in FIELDS] == list(Condition.__struct_fields__)
    switches = [field.name for field in FIELDS if field.switch]
    assert switches == [field.name for field in msgspec.structs.fields(Condition) if isinstance(field.default, bool)]
    for field in FIELDS:
        pair = field.switch.split("/")
        assert not field.switch or [*field.words(True), *field.words(False)] == pair


@pytest.mark.parametrize(("task", "source"), [("answer", "none"), ("twi", "self"), ("discussion", "none")])
def test_what_a_condition_leaves_open_is_as_the_task_has_it(task: str, source: str) -> None:
    settled = resolve_condition(task, Condition(image_share=0.5))
    assert (settled.findings, settled.summary, settled.image_share) == (source, source, 0.5)
    assert settled == msgspec.structs.replace(default_condition(task), image_share=0.5)
    given = Condition(findings="none", summary="expert")
    assert resolve_condition(task, given) == given
