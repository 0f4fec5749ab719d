"""What holds for any text and any reply: fences give back what went in, spans are spans, verdicts find their units."""

import json
import re
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from medthink.core.tables import escape_formula, unescape_formula
from medthink.judge.kinds.discussion import DimensionForm, SentenceVerdict, match_dimensions
from medthink.judge.kinds.kind import match_ids
from medthink.judge.kinds.steps import StepsForm
from medthink.judge.rubric import DIMENSIONS
from medthink.judge.scores import majority_label, pairwise_disagreement
from medthink.judge.units import UnitSource, split_source
from medthink.workflow.forms import ReplyFault, fence, inert_json, read_form
from medthink.workflow.sentences import split_sentences

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
MARKED = st.lists(
    st.one_of(TEXT, st.sampled_from(["<|im_end|>", "\n", '"', "\\", "END DATA", "{{call}}", "\u202e"]))
).map("".join)


@given(MARKED)
def test_a_fence_gives_back_the_text_on_one_line_of_visible_characters(text):
    fenced = fence({"text": text})
    lines = fenced.text.split("\n")
    assert len(lines) == 3
    assert json.loads(lines[1]) == {"text": text}
    assert all(character == " " or unicodedata.category(character)[0] not in "CZ" for character in lines[1])
    assert fenced.nonce not in lines[1]


@given(MARKED)
def test_no_mark_of_a_template_survives_in_a_string(text):
    inside = json.dumps(text)  # a text that is JSON itself
    data = inert_json({"text": inside})
    folded = unicodedata.normalize("NFKC", data[len('{"text": ') : -1])
    assert not set(folded) & set("<>[]{}|&`#")


@given(MARKED)
def test_sentences_are_ordered_disjoint_trimmed_and_hold_every_word_but_markers(text):
    spans = split_sentences(text)
    ends = [0, *(span.end for span in spans)]
    assert all(before <= span.start < span.end for before, span in zip(ends, spans, strict=False))
    assert all(text[span.start : span.end].strip() == text[span.start : span.end] for span in spans)
    assert bool(spans) == bool(re.search(r"\w", text))


@given(st.lists(st.text("abc .", min_size=1), min_size=1, max_size=6))
def test_unit_ids_depend_on_place_and_words_and_are_never_shared(parts):
    texts = {str(k): part for k, part in enumerate(parts)}
    units = split_source(UnitSource(run="r", case=1, sample=0, what="findings", parts=texts)).units
    assert len({unit.id for unit in units}) == len(units)
    other = split_source(UnitSource(run="r", case=1, sample=1, what="findings", parts=texts)).units
    assert not {unit.id for unit in units} & {unit.id for unit in other}


IDS = st.lists(st.text("abcdef0123456789", min_size=4, max_size=4), min_size=1, max_size=8, unique=True)


def verdict(one: str) -> SentenceVerdict:
    return SentenceVerdict(id=one, label="correct", reason="so")


@given(IDS, st.randoms(use_true_random=False))
def test_any_order_of_verdicts_gives_the_order_of_the_units(ids, chance):
    shuffled = list(ids)
    chance.shuffle(shuffled)
    assert [one.id for one in match_ids(map(verdict, shuffled), ids)] == ids


@given(st.permutations(DIMENSIONS))
def test_any_order_of_scores_gives_the_order_of_the_dimensions(names):
    scores = [DimensionForm(dimension=name, score=1, zero="not applicable", reason="so") for name in names]
    assert [one.dimension for one in match_dimensions(scores, ["u1"])] == list(DIMENSIONS)


@given(IDS, st.lists(st.text("abcdef0123456789", min_size=4, max_size=4), max_size=8))
def test_verdicts_match_only_when_their_ids_are_exactly_the_units(ids, given_ids):
    matched = match_ids(map(verdict, given_ids), ids)
    assert isinstance(matched, ReplyFault) == (sorted(given_ids) != sorted(ids))


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats(allow_nan=False) | TEXT, lambda x: st.lists(x) | st.dictionaries(TEXT, x)
    )
)
def test_a_reply_that_is_not_the_form_is_a_fault_and_nothing_raises(value):
    assert isinstance(read_form(json.dumps(value), StepsForm, "call"), ReplyFault)


@given(TEXT)
def test_any_reply_is_read_without_raising(text):
    assert isinstance(read_form(text, StepsForm, "call"), ReplyFault)


@given(TEXT)
def test_a_guard_can_be_taken_off_and_leaves_no_formula(text):
    guarded = escape_formula(text)
    assert unescape_formula(guarded) == text
    assert not guarded.lstrip(' "\u00a0\ufeff').startswith(("=", "+", "-", "@", "\t", "\r"))


@given(st.lists(st.sampled_from("abc"), max_size=7))
def test_a_majority_is_unique_and_disagreement_a_share(labels):
    chosen = majority_label(labels)
    assert (chosen is not None) == any(2 * labels.count(label) > len(labels) for label in set(labels))
    assert 0 <= pairwise_disagreement(labels) <= 1
    assert (pairwise_disagreement(labels) == 0) == (len(set(labels)) < 2)
