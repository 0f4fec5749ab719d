from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medthink.core.errors import UsageError
from medthink.workflow.view import choose_images, count_shown, image_sources, rank_images

SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


@given(total=st.integers(0, 49), choice=st.sampled_from(["first", "spread", "seeded"]), key=st.integers(0, 2**63))
def test_smaller_shares_lie_inside_larger_ones(total: int, choice: str, key: int) -> None:
    subsets = [choose_images(total, share=share, choice=choice, key=key) for share in SHARES]
    assert subsets[0] == ()
    assert subsets[-1] == tuple(range(total))
    for small, large in pairwise(subsets):
        assert set(small) <= set(large)
        assert list(large) == sorted(set(large))


@given(total=st.integers(0, 49), choice=st.sampled_from(["first", "spread", "seeded"]), key=st.integers(0, 2**63))
def test_ranks_are_permutations(total: int, choice: str, key: int) -> None:
    assert sorted(rank_images(total, choice=choice, key=key)) == list(range(total))


@given(total=st.integers(1, 49), percent=st.integers(1, 100))
def test_any_share_above_zero_shows_an_image_and_rounds_up(total: int, percent: int) -> None:
    shown = count_shown(total, percent / 100)
    assert shown == -(-total * percent // 100)
    assert 1 <= shown <= total


def test_shares_are_decimals_not_binary_floats() -> None:
    assert count_shown(100, 0.07) == 7
    assert count_shown(49, 0.0) == 0


def test_the_rules_choose_what_they_say() -> None:
    assert choose_images(10, share=0.4, choice="first", key=1) == (0, 1, 2, 3)
    assert choose_images(10, share=0.2, choice="spread", key=1) == (0, 9)
    assert choose_images(9, share=0.3, choice="spread", key=1) == (0, 4, 8)
    seeded = {choose_images(10, share=0.4, choice="seeded", key=key) for key in range(50)}
    assert len(seeded) > 30


def test_seeded_choice_is_fair() -> None:
    """Each of 8 images is the first one taken up about as often: 4,000 keys, 500 expected, 5 sigma is 105."""
    counts = [0] * 8
    for key in range(4000):
        counts[rank_images(8, choice="seeded", key=key)[0]] += 1
    assert all(395 < count < 605 for count in counts)


@given(ids=st.sets(st.integers(0, 10**6), min_size=2, max_size=40), seed=st.integers(0, 2**32))
def test_every_case_lends_once_and_never_to_itself(ids: set[int], seed: int) -> None:
    lenders = image_sources(ids, seed)
    assert set(lenders) == ids == set(lenders.values())
    assert all(case != lender for case, lender in lenders.items())
    assert lenders == image_sources(sorted(ids, reverse=True), seed), "the order of the ids is of no account"


def test_donors_need_another_case() -> None:
    with pytest.raises(UsageError, match="no other case"):
        image_sources([1], 0)


def test_another_seed_gives_other_donors() -> None:
    assert len({tuple(sorted(image_sources(range(20), seed).items())) for seed in range(20)}) == 20
