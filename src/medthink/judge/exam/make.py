"""Makes an exam from a benchmark's expert texts: the same cases, plan and seed give the same exam texts."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from random import Random

import msgspec
from msgspec.structs import replace

from medthink.cases.case import Case
from medthink.core.digest import seed_from
from medthink.core.errors import DataError
from medthink.judge.decisive import list_by_rule
from medthink.judge.edits import DELETED, EDITS, INVENTED, OPTION, falsify
from medthink.judge.edits.findings import delete_finding, invent_finding, name_other_options
from medthink.judge.edits.guards import is_claim, is_stated_in
from medthink.judge.edits.harmless import lengthen_sentence, merge_sentences, reword
from medthink.judge.edits.plausible import References
from medthink.judge.exam.results import LONGER, REWORDED, UNTOUCHED, ExamEdit, ExamText, join_sentences
from medthink.workflow.carried import carry
from medthink.workflow.sentences import split_sentences

# About the number of steps in a rationale.
_MOST_SENTENCES = 8
# In every fourth text two sentences are merged.
_MERGED_EACH = 4
_FILLER = (
    "As always, the images are to be read in the light of the clinical history.",
    "Careful and systematic reading of every image is the foundation of a good diagnosis.",
    "Discussion of such cases among colleagues is of value in everyday practice.",
    "Teaching cases help radiologists in training to remember what they have seen.",
    "In summary, the considerations above should be borne in mind when similar cases are met.",
)


class ExamPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The number of exam texts for each edit, and the seed that selects them.

    The same number of texts is also given with the units in reverse order, and half as many pairs of texts are
    compared.
    """

    items: int = 40
    seed: int = 0

    @property
    def pairs(self) -> int:
        """The number of pairs of texts for length bias, and for self-preference."""
        return max(1, self.items // 2)


class _Draft(msgspec.Struct, frozen=True):
    """A sentence that may be edited, with its position and the edited wording."""

    case: int
    sentences: tuple[str, ...]
    place: int
    text: str
    is_new: bool = False


def make_exam(cases: Iterable[Case], plan: ExamPlan) -> tuple[ExamText, ...]:
    """Draw the exam texts; DataError if the texts allow no edit at all."""
    chance = Random(seed_from("exam", plan.seed))
    known = {case.id: case for case in cases}
    numbers = count()
    statements = list(_statement_sheets(known, plan, chance, numbers))
    if not statements:
        raise DataError("none of the expert's sentences can be edited", remedy="an exam needs findings in English")
    turned = chance.sample(statements, min(plan.items, len(statements)))
    reversals = [
        replace(sheet, number=next(numbers), reverses=sheet.number) for sheet in turned if len(sheet.spans) > 1
    ]
    shuffled = sorted(known.values(), key=lambda case: case.id)
    chance.shuffle(shuffled)
    deletions = list(_deletion_sheets(shuffled, plan, numbers))
    lengths = list(_length_sheets(shuffled, plan, numbers))
    return (*statements, *reversals, *deletions, *lengths)


def discussed_cases(sheets: Iterable[ExamText]) -> list[int]:
    """The cases whose discussions are compared, and may therefore be reworded by a judge."""
    return list(dict.fromkeys(sheet.case for sheet in sheets if sheet.form == "pair"))


def pair_sheets(numbers: Iterable[int], case: int, text: str, other: str, *, contender: str) -> list[ExamText]:
    """A text and its contender, in both orders."""
    return [
        ExamText(
            number=number,
            case=case,
            form="pair",
            texts=(other, text) if is_first else (text, other),
            contender=contender,
            is_first=is_first,
        )
        for is_first, number in zip((True, False), numbers, strict=False)
    ]


def sentences_of(text: str) -> tuple[str, ...]:
    """The sentences of a text; items that only mean something below their heading are left out."""
    return tuple(text[one.start : one.end] for one in carry(text, split_sentences(text)) if not one.carried)


def _statement_sheets(
    cases: dict[int, Case], plan: ExamPlan, chance: Random, numbers: Iterator[int]
) -> Iterator[ExamText]:
    """The exam texts for every edit; rare edits choose first, and each case is used as rarely as possible."""
    drafts: dict[str, list[_Draft]] = {name: [] for name in (*EDITS, OPTION, INVENTED)}
    references = References.of(text for case in cases.values() for text in _expert_texts(case))
    for case in cases.values():
        for edit, draft in _drafts(case, chance, references):
            drafts[edit].append(draft)
    used: Counter[int] = Counter()
    for edit in sorted(drafts, key=lambda name: len(drafts[name])):
        found = drafts[edit]
        chance.shuffle(found)
        for _ in range(min(plan.items, len(found))):
            draft = min(found, key=lambda one: used[one.case])
            found.remove(draft)
            used[draft.case] += 1
            case = cases[draft.case]
            number = next(numbers)
            yield _sheet(draft, edit, number, f"{case.reference.answer}: {case.reference.answer_text}")


def _expert_texts(case: Case) -> tuple[str, ...]:
    return (case.reference.findings, case.reference.discussion, *(image.caption for image in case.reference.images))


def _drafts(case: Case, chance: Random, references: References) -> Iterator[tuple[str, _Draft]]:
    """Every way in which a sentence of the case can be made false."""
    findings, discussion = (sentences_of(text) for text in (case.reference.findings, case.reference.discussion))
    captions = [one for image in case.reference.images for one in sentences_of(image.caption)]
    for place, sentence in enumerate(findings):
        said = [*findings[:place], *findings[place + 1 :], *captions, *discussion]
        for edit, text in falsify(sentence, said, references=references).items():
            yield edit, _Draft(case.id, findings, place, text)
    lead = findings[: _MOST_SENTENCES - 1]
    options = case.question.options.values()
    for sentence in discussion:
        others = name_other_options(sentence, options, case.reference.answer_text)
        if others and is_claim(sentence) and not is_stated_in(sentence, findings):
            yield OPTION, _Draft(case.id, (*lead, sentence), len(lead), chance.choice(others))
            break
    everything = " ".join([case.question.history, *findings, *captions, *discussion])
    if findings and (invented := invent_finding(everything, chance)):
        yield INVENTED, _Draft(case.id, (*lead, invented), len(lead), invented, is_new=True)


def _sheet(draft: _Draft, edit: str, number: int, answer: str) -> ExamText:
    """A window of the text around the edited sentence, with a harmless edit of another one."""
    first = max(0, min(draft.place - _MOST_SENTENCES // 2, len(draft.sentences) - _MOST_SENTENCES))
    window = list(draft.sentences[first : first + _MOST_SENTENCES])
    place = draft.place - first
    before = "" if draft.is_new else window[place]
    # False sentences are reworded and lengthened like true ones, or their wording would give them away.
    rephrased = _rephrase(draft.text, number) if number % 4 > 1 and not draft.is_new else None
    window[place] = rephrased or draft.text
    changes = [ExamEdit(place=place, edit=edit, is_true=False, before=before, is_rephrased=rephrased is not None)]
    twin = _twin(window, place, number)
    if twin is not None:
        change, text = twin
        window[change.place] = text
        changes.append(change)
    if number % _MERGED_EACH == 0:
        changes = _merge(window, changes)
    text, spans = join_sentences(window)
    return ExamText(
        number=number,
        case=draft.case,
        form="statements",
        texts=(text,),
        spans=spans,
        changes=tuple(changes),
        answer=answer,
    )


def _merge(window: list[str], changes: list[ExamEdit]) -> list[ExamEdit]:
    """Merge two neighbours that nothing was done to, if there are any; the places of later changes move."""
    changed = {change.place for change in changes}
    for place in range(len(window) - 1):
        if {place, place + 1} & changed:
            continue
        merged = merge_sentences(window[place], window[place + 1])
        if merged:
            before = " ".join(window[place : place + 2])
            window[place : place + 2] = [merged]
            moved = [replace(one, place=one.place - (one.place > place)) for one in changes]
            return [*moved, ExamEdit(place=place, edit=REWORDED, is_true=True, before=before)]
    return changes


def _rephrase(sentence: str, number: int) -> str | None:
    """The sentence in other words, or longer; every rule takes its turn."""
    is_longer = number % 2 == 1
    return lengthen_sentence(sentence, number // 2) if is_longer else reword(sentence, number // 2)


def _twin(window: Sequence[str], edited: int, number: int) -> tuple[ExamEdit, str] | None:
    """A harmless edit of the nearest sentence to the edited one that allows it."""
    places = sorted((place for place in range(len(window)) if place != edited), key=lambda place: abs(place - edited))
    for place in places:
        text = _rephrase(window[place], number)
        if text is not None:
            name = LONGER if number % 2 == 1 else REWORDED
            return ExamEdit(place=place, edit=name, is_true=True, before=window[place]), text
    return None


def _deletion_sheets(cases: Sequence[Case], plan: ExamPlan, numbers: Iterator[int]) -> Iterator[ExamText]:
    """A text without one of the case's decisive findings, and with it: unchanged, in other words, and made false."""
    made = 0
    for case in cases:
        sentences = sentences_of(case.reference.findings)
        for finding in list_by_rule(case).findings:
            kept = delete_finding(sentences, finding.text) if finding.text in sentences else None
            if kept is None or made == plan.items:
                continue
            for edit, texts in {DELETED: kept, **_versions(sentences, finding.text, made)}.items():
                change = ExamEdit(place=0, edit=edit, is_true=edit in (UNTOUCHED, REWORDED), before=finding.text)
                yield ExamText(
                    number=next(numbers),
                    case=case.id,
                    form="omission",
                    texts=(" ".join(texts),),
                    finding=finding.text,
                    changes=(change,),
                )
            made += 1
            break


def _versions(sentences: Sequence[str], finding: str, turn: int) -> dict[str, tuple[str, ...]]:
    """The text with a finding untouched, reworded and made false by one edit; the edits take turns.

    A judge that only looks for the finding word for word misses what is reworded, and takes the false for missed.
    """
    others = [one for one in sentences if one != finding]
    false = list(falsify(finding, others).items())
    texts = {UNTOUCHED: finding} | dict(false[turn % len(false) :][:1] if false else ())
    if reworded := reword(finding):
        texts[REWORDED] = reworded
    return {edit: tuple(text if one == finding else one for one in sentences) for edit, text in texts.items()}


def _length_sheets(cases: Sequence[Case], plan: ExamPlan, numbers: Iterator[int]) -> Iterator[ExamText]:
    """A discussion, and the same padded with sentences that do not concern the case, in both orders."""
    discussed = [case for case in cases if case.reference.discussion.strip()]
    for case in discussed[: plan.pairs]:
        text = case.reference.discussion.strip()
        longer = f"{text} {' '.join(_FILLER)}"
        yield from pair_sheets(numbers, case.id, text, longer, contender=LONGER)
