"""The interface of a baseline, and the kind that only chooses among the options."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from medthink.cases.benchmark import Benchmark
from medthink.cases.case import Case, Question
from medthink.core.digest import digest_bytes, seed_from
from medthink.core.errors import UsageError
from medthink.models.request import ModelError, Reply, Request, Usage
from medthink.workflow.ask import Prompt, PromptKind


class Baseline(Protocol):
    """A model inside this process that answers from a prompt's structure."""

    name: str

    def answer(self, prompt: Prompt, *, sample: int) -> Reply:
        """Answer in the form the prompt asks for, or raise ModelError if this baseline cannot."""

    def refuse(self, kinds: Collection[PromptKind], *, has_options: bool) -> None:
        """Raise ModelError if this baseline cannot answer one of these kinds of prompt; called before a run."""


class BaselineChoice(msgspec.Struct, frozen=True):
    """The option chosen, and the reason."""

    letter: str
    explanation: str


Choose = Callable[[Question, int], BaselineChoice]


class ChoosingBaseline:
    """A baseline that describes no image: it picks an option, and its findings say that there are none."""

    def __init__(self, name: str, choose: Choose) -> None:
        self.name = name
        self._choose = choose

    def answer(self, prompt: Prompt, *, sample: int) -> Reply:
        """Pick an option; findings and summaries say that there are none."""
        unread = f"Not described: baseline/{self.name} writes no findings."
        if prompt.kind in ("findings", "summary"):
            return reply(self.name, {prompt.kind: unread})
        if (nothing := remember_nothing(prompt)) is not None:
            return reply(self.name, nothing)
        self.refuse([prompt.kind], has_options=bool(prompt.question.options))
        pick = self._choose(prompt.question, sample)
        if prompt.kind == "twi":
            return reply(
                self.name, steps([unread] * len(prompt.question.images), unread, pick.explanation, pick.letter)
            )
        return reply(self.name, {"explanation": pick.explanation, "answer": pick.letter})

    def refuse(self, kinds: Collection[PromptKind], *, has_options: bool) -> None:
        """Raise ModelError for a discussion, or where no options are shown."""
        if "discussion" in kinds:
            raise unsupported(self.name, "writes no discussion", remedy="ask baseline/retrieval for one")
        if not has_options:
            raise unsupported(self.name, "chooses among options and none are shown", remedy="show the options")


def remember_nothing(prompt: Prompt) -> dict[str, Any] | None:
    """The answer to a recall prompt from a model that remembers nothing; None for any other kind of prompt."""
    match prompt.kind:
        case "hidden_option":
            return {"option": "Not known."}
        case "option_letters":
            return {"letters": list(prompt.question.options)}
        case "case_number":
            return {"case_number": "unknown"}
    return None


def steps(findings: list[str], summary: str, reasoning: str, answer: str) -> dict[str, Any]:
    """The three steps in the form of a single call."""
    return {
        "step1_per_image_findings": findings,
        "step2_integrated_summary": summary,
        "step3_differential_reasoning": reasoning,
        "answer": answer,
    }


def reply(name: str, content: dict[str, Any]) -> Reply:
    """The content as a reply; an embedded baseline takes no tokens and no time."""
    return Reply(text=msgspec.json.encode(content).decode(), json=content, usage=Usage(), model=f"baseline/{name}")


def refuse_settings(name: str, request: Request) -> None:
    """Raise ModelError if the request sets a parameter that this baseline would ignore."""
    for flag, value in (
        ("--temperature", request.temperature),
        ("--effort", request.effort),
        ("--max-tokens", request.max_tokens),
        ("--image-detail", request.image_detail),
        ("--model-seed", None if name == "random" else request.seed),
    ):
        if value is not None:
            raise unsupported(name, f"takes no {flag}", remedy=f"leave out {flag}")


def unsupported(name: str, problem: str, *, remedy: str) -> ModelError:
    """The error for something that this baseline does not do."""
    return ModelError("unsupported", f"baseline/{name} {problem}", remedy=remedy)


Learned = TypeVar("Learned")
Fit = Callable[[list[Case]], Learned]

_MOST_KEPT = 6
_kept: dict[tuple[str, str], Any] = {}


class TrainedOnce(Generic[Learned]):
    """A baseline's training on the train split; it is done at the first question, not before."""

    def __init__(self, benchmark: Benchmark, name: str, fit: Fit[Learned]) -> None:
        if "train" not in benchmark.splits:
            raise UsageError(
                f"{benchmark.path}: no train split, and baseline/{name} learns from the train split",
                remedy="add train.jsonl or train.parquet to the folder, or use baseline/random or baseline/longest",
            )
        self._benchmark = benchmark
        self._name = name
        self._fit = fit
        self._learned: tuple[Learned, frozenset[str]] | None = None

    def recall(self, question: Question) -> Learned:
        """The trained object; raises ModelError for a question that was trained on."""
        if self._learned is None:
            self._learned = self._learn()
        learned, known = self._learned
        if not known.isdisjoint(_marks(question)):
            raise unsupported(self._name, "was trained on this case", remedy="run it on a split other than train")
        return learned

    def _learn(self) -> tuple[Learned, frozenset[str]]:
        cases = [case for case in self._benchmark["train"] if is_usable(case)]
        if not cases:
            raise UsageError(
                f"{self._benchmark.path}: no case of the train split has its answer among its options",
                remedy="medthink data check says what is wrong",
            )
        known = frozenset(mark for case in cases for mark in _marks(case.question))
        return _fit_once(
            (self._name, f"{self._benchmark.path.resolve()} {_content_of(cases)}"), self._fit, cases
        ), known


def is_usable(case: Case) -> bool:
    """Whether a case can be learned from: several options, the right one among them."""
    return len(case.question.options) > 1 and case.reference.answer in case.question.options


def _fit_once(key: tuple[str, str], fit: Fit[Learned], cases: list[Case]) -> Learned:
    if key not in _kept:
        # The oldest goes first: a process that sweeps over benchmarks does not hold them all.
        while len(_kept) >= _MOST_KEPT:
            del _kept[next(iter(_kept))]
        _kept[key] = fit(cases)
    learned: Learned = _kept[key]
    return learned


def _marks(question: Question) -> Iterable[str]:
    """The identity of a question: its images' paths, and its text if history and options are shown."""
    yield from (image.path for image in question.images)
    if question.history and question.options:
        yield "\n".join([question.history, *sorted(question.options.values())])


def _content_of(cases: Sequence[Case]) -> str:
    """A digest of the training data; images enter by path, because reading them is slow."""
    lines = [
        msgspec.json.encode(
            (
                case.id,
                case.question.history,
                case.question.options,
                [image.path for image in case.question.images],
                case.reference,
            )
        )
        for case in cases
    ]
    return digest_bytes(b"\n".join(lines))


def rule_baseline(name: str, benchmark: Benchmark) -> ChoosingBaseline:
    """The baseline that follows the rule of that name."""
    choose: Choose = choose_longest if name == "longest" else choose_random
    if name == "majority":
        choose = _majority_chooser(benchmark)
    return ChoosingBaseline(name, choose)


def random_letter(question: Question, sample: int) -> str:
    """A letter drawn with equal chances, seeded by the question's text and the sample's number."""
    letters = list(question.options)
    return letters[seed_from("random letter", sample, question.history, *question.options.values()) % len(letters)]


def choose_random(question: Question, sample: int) -> BaselineChoice:
    """A random letter."""
    return BaselineChoice(random_letter(question, sample), "Drawn at random, without a look at the case.")


def longest_letter(question: Question) -> str:
    """The option with the most characters, not counting spaces around it; in a tie, the one shown first."""
    return max(question.options, key=lambda letter: len(question.options[letter].strip()))


def choose_longest(question: Question, sample: int) -> BaselineChoice:  # noqa: ARG001
    """The longest option, whatever the sample."""
    letter = longest_letter(question)
    length = len(question.options[letter].strip())
    return BaselineChoice(letter, f"The longest option, {length} characters.")


def rank_letters(cases: list[Case]) -> list[str]:
    """The letters by how often they are right, most frequent first; ties in alphabetical order."""
    counts = Counter(case.reference.answer for case in cases)
    return sorted(counts, key=lambda letter: (-counts[letter], letter))


def _majority_chooser(benchmark: Benchmark) -> Choose:
    lessons = TrainedOnce(benchmark, "majority", rank_letters)

    def choose(question: Question, sample: int) -> BaselineChoice:  # noqa: ARG001
        letter = next(
            (letter for letter in lessons.recall(question) if letter in question.options), next(iter(question.options))
        )
        return BaselineChoice(letter, f"{letter} is the letter most often right in the train split.")

    return choose
