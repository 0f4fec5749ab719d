"""One class per word: a public name stands for one class in the whole package."""

import ast
from collections import defaultdict
from pathlib import Path

import medthink

ROOT = Path(medthink.__file__).parent


def _classes(tree: ast.Module) -> list[str]:
    return [node.name for node in tree.body if isinstance(node, ast.ClassDef)]


def _aliases(tree: ast.Module) -> list[str]:
    """Return the names of type aliases: assigned once at the top of a module, in capitalised words."""
    targets = [node.targets[0] for node in tree.body if isinstance(node, ast.Assign)]
    names = [target.id for target in targets if isinstance(target, ast.Name)]
    return [name for name in names if name[0].isupper() and not name.isupper()]


def test_no_public_class_name_stands_twice() -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for path in sorted(ROOT.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for name in _classes(tree):
            homes[name].append(str(path.relative_to(ROOT)))
    twice = {name: places for name, places in homes.items() if len(places) > 1 and not name.startswith("_")}
    assert not twice, f"one class per word, so rename all but one of: {twice}"


def test_no_type_alias_bears_the_name_of_a_class() -> None:
    trees = {str(path.relative_to(ROOT)): ast.parse(path.read_text(encoding="utf-8")) for path in ROOT.rglob("*.py")}
    classes = {name: place for place, tree in trees.items() for name in _classes(tree)}
    clashes = {
        f"{place}: {name}": classes[name]
        for place, tree in sorted(trees.items())
        for name in _aliases(tree)
        if name in classes
    }
    assert not clashes, f"rename the alias, or use the class: {clashes}"
