"""The cases that a reader has revealed: the only ones whose answers may be shown to that reader."""

from collections.abc import Iterator, Mapping

from medthink.board.store import BoardStore
from medthink.cases.case import Case
from medthink.readers.studies.setup import is_awaited
from medthink.web.access import Asked, caller_of
from medthink.web.human_answers import HumanAnswer, HumanAnswers
from medthink.web.library import OpenBenchmark
from medthink.web.reader_codes import reader_of


class RevealedCases:
    """What one reader may see of a benchmark."""

    def __init__(self, bench: OpenBenchmark, numbers: Mapping[int, object]) -> None:
        self._bench = bench
        self._numbers = numbers

    def cases(self) -> Iterator[Case]:
        """The revealed cases, in the order of their numbers."""
        return (self._bench.cases[number] for number in sorted(self._numbers) if number in self._bench.cases)

    def code(self, case: Case) -> str:
        """The name of a case in addresses."""
        return self._bench.code(case.id)

    def image_ids(self, case: Case) -> tuple[str, ...]:
        """The first images of a case."""
        return tuple(self._bench.id_of(image) for image in case.question.images[:4])


class Reveals:
    """What each reader may see of one benchmark, except what they still have to read blind in a study."""

    def __init__(self, bench: OpenBenchmark, store: BoardStore) -> None:
        self.bench = bench
        self._store = store

    def answers(self, request: Asked) -> dict[int, HumanAnswer]:
        """What the reader who asks has committed to, by case: the cases that are revealed to them."""
        found = HumanAnswers(self._store).of_reader(reader_of(request), self.bench.text_fingerprint)
        return {number: one for number, one in found.items() if not self.awaits(request, number)}

    def awaits(self, request: Asked, number: int) -> bool:
        """Whether the account that asks has still to read this case blind in a study."""
        account = caller_of(request).account
        if account is None:
            return False
        with self._store.read() as connection:
            return is_awaited(connection, account.name, self.bench.benchmark.path, number)

    def of(self, request: Asked) -> RevealedCases:
        """What the calling reader may see."""
        return RevealedCases(self.bench, self.answers(request))
