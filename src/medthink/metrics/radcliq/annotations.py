"""RadGraph F1 from annotations: the mean of entity F1 and relation F1, over sets, case kept.

Range 0 to 1, higher is better. Where neither text has a relation the relation F1 is 0, so equal texts without
relations score 0.5: that is how the original defines it.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from medthink.core.errors import DataError

Entity = tuple[str, str]
Relation = tuple[Entity, Entity, str]


class Annotation(NamedTuple):
    """The entities and relations of one text."""

    entities: frozenset[Entity]
    relations: frozenset[Relation]


class _RawEntity(msgspec.Struct):
    tokens: str
    label: str
    relations: list[tuple[str, str]] = []


class _RawAnnotation(msgspec.Struct):
    entities: dict[str, _RawEntity]


def read_annotation(value: Any, *, file: object = "", field: str = "") -> Annotation:
    """One text's annotation in the form the RadGraph package writes, or DataError."""
    try:
        raw = msgspec.convert(value, _RawAnnotation).entities
    except msgspec.ValidationError as error:
        remedy = 'write {"entities": {"1": {"tokens": …, "label": …, "relations": [[type, id], …]}}}'
        raise DataError(f"not a RadGraph annotation: {error}", file=file, field=field, remedy=remedy) from None
    unknown = [other for entity in raw.values() for _, other in entity.relations if other not in raw]
    if unknown:
        raise DataError(f"a relation points to an unknown entity: {unknown[0]}", file=file, field=field)
    named = {key: (entity.tokens, entity.label) for key, entity in raw.items()}
    relations = {(named[key], named[other], kind) for key, entity in raw.items() for kind, other in entity.relations}
    return Annotation(frozenset(named.values()), frozenset(relations))


def radgraph_f1(reference: Annotation, candidate: Annotation) -> float:
    """The mean of entity and relation F1."""
    entities = _f1(reference.entities, candidate.entities)
    return (entities + _f1(reference.relations, candidate.relations)) / 2


def _f1(reference: frozenset[Any], candidate: frozenset[Any]) -> float:
    stated = len(reference) + len(candidate)
    return 2 * len(reference & candidate) / stated if stated else 0.0


def read_annotations(value: Any, *, file: object = "") -> dict[str, Annotation]:
    """The annotations of many texts by their key."""
    if not isinstance(value, Mapping):
        raise DataError("not an object of annotations by key", file=file)
    return {str(key): read_annotation(entry, file=file, field=str(key)) for key, entry in value.items()}
