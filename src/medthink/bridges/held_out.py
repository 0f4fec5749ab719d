"""Train cases that must not be trained on, because they repeat a held-out case by number, text or picture."""

from collections.abc import Iterator, Sequence

from medthink.bridges.targets import TargetProgress
from medthink.cases.benchmark import Benchmark
from medthink.cases.check.near import NearlyIdentical
from medthink.cases.check.pixels import Looked, Slot, look_at_all, slots_of
from medthink.cases.check.texts import spell
from medthink.cases.phash import look_alikes
from medthink.core.numbers import as_percent


def find_held_out(
    train: Benchmark, others: Sequence[Benchmark], against: Sequence[Benchmark], progress: TargetProgress
) -> dict[int, str]:
    """The train cases to refuse, and why: `others` are splits of the same benchmark, `against` other benchmarks."""
    refused = dict(_same_number(train, others))
    for found in (_same_text(train, [*others, *against]), _same_picture(train, [*others, *against], progress)):
        for number, reason in found:
            refused.setdefault(number, reason)
    return refused


def _same_number(train: Benchmark, others: Sequence[Benchmark]) -> Iterator[tuple[int, str]]:
    numbers = {case.id: case.split for other in others for case in other}
    for case in train:
        if case.id in numbers:
            yield case.id, f"it is in {numbers[case.id]} too"


def _same_text(train: Benchmark, others: Sequence[Benchmark]) -> Iterator[tuple[int, str]]:
    histories, cases = NearlyIdentical(), list[tuple[str, int]]()
    # The held-out ones first: each later text is matched with its nearest predecessor from the other side.
    for side, benchmarks in (("held out", others), ("train", [train])):
        for benchmark in benchmarks:
            for case in benchmark:
                histories.add(side, spell(case.question.history))
                cases.append((case.split, case.id))
    for match in histories.matches():
        split, number = cases[match.first]
        same = as_percent(match.similarity, 0)
        yield cases[match.second][1], f"its history is {same} the same as {split} case {number}"


def _same_picture(train: Benchmark, others: Sequence[Benchmark], progress: TargetProgress) -> Iterator[tuple[int, str]]:
    benchmarks = [*others, train] if others else []
    slots = [[slot for case in benchmark for slot in slots_of(case)] for benchmark in benchmarks]
    total, looked = sum(map(len, slots)), list[tuple[bool, Slot, Looked]]()
    for benchmark, wanted in zip(benchmarks, slots, strict=True):
        for slot, seen in look_at_all(wanted, benchmark.images):
            progress("images", total)
            looked.append((benchmark is train, slot, seen))
    yield from _same_pixels(looked)
    yield from _same_look(looked)


def _same_pixels(looked: Sequence[tuple[bool, Slot, Looked]]) -> Iterator[tuple[int, str]]:
    held_out = {seen.digest: slot for is_train, slot, seen in looked if not is_train and seen.digest is not None}
    for is_train, slot, seen in looked:
        if is_train and seen.digest in held_out:
            other = held_out[seen.digest]
            yield slot.case, f"image {slot.slot} is image {other.slot} of {other.split} case {other.case}"


def _same_look(looked: Sequence[tuple[bool, Slot, Looked]]) -> Iterator[tuple[int, str]]:
    shown = [(is_train, slot, seen.appearance) for is_train, slot, seen in looked if seen.appearance is not None]
    for first, second in look_alikes([look for *_, look in shown]):
        (is_other_train, other, _), (is_train, slot, _) = shown[first], shown[second]
        # Train comes last, so that the train image is the second of a pair.
        if is_train and not is_other_train:
            yield slot.case, f"image {slot.slot} looks like image {other.slot} of {other.split} case {other.case}"
