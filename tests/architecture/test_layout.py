"""Where files are, and that the picture of the rooms shows the layers that are checked."""

import re
import tomllib
from itertools import pairwise

import grimp

from tests.models.repository import ROOMS, ROOT, listed_files

KINDS = {
    "fuzz",
    *("architecture", "compat", "contract", "infra", "integration", "property", "spark", "unit"),
    *("models", "proofs", "rigs", "sample_project", "scenarios", "servers", "simulation"),
}


def loose(paths: list[str]) -> list[str]:
    """Python files of `tests/` that are in no folder of a known kind."""
    return [
        path
        for path in paths
        if path.startswith("tests/")
        and path.endswith(".py")
        and path.split("/")[1] not in KINDS | {"conftest.py"}
    ]


def test_tests_have_no_loose_modules() -> None:
    assert loose(listed_files("tests")) == []


def test_a_loose_module_is_found() -> None:
    paths = ["tests/rig.py", "tests/odds/a.py", "tests/rigs/broker_rig.py", "tests/conftest.py"]
    assert loose(paths) == ["tests/rig.py", "tests/odds/a.py"]


def layers_of(container: str) -> list[set[str]]:
    """The layers that import-linter checks, from the roof down."""
    text = (ROOT / "pyproject.toml").read_text()
    for contract in tomllib.loads(text)["tool"]["importlinter"]["contracts"]:
        if contract.get("containers") == [container]:
            return [set(re.findall(r"\w+", layer)) for layer in contract["layers"]]
    raise LookupError(container)


def test_the_rooms_are_the_linked_folders_of_the_contract() -> None:
    named: set[str] = set().union(*layers_of("bucketlog"))
    assert set(ROOMS) == {name for name in named if (ROOT / name / "__init__.py").exists()}


def height_in_picture(room: str) -> float:
    """The distance of its name from the top. Raises `LookupError` if the picture lacks the room."""
    for line in (ROOT / "docs/pictures/rooms.svg").read_text().splitlines():
        found = re.match(r'<text class="\w" x="[\d.]+" y="([\d.]+)".*?>(.*)</text>', line)
        if found and room in re.findall(r"\w+", found[2]):
            return float(found[1])
    raise LookupError(room)


def test_the_picture_shows_every_room_from_the_roof_down() -> None:
    layers = [{height_in_picture(name) for name in layer} for layer in layers_of("bucketlog")]
    for above, below in pairwise(layers):
        assert max(above) <= max(below)


def test_the_order_of_the_broker_is_its_contract() -> None:
    section = (ROOT / "ARCHITECTURE.md").read_text().split("## Rooms")[1].split("\n## ")[0]
    (order,) = re.findall(r"^```\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    shown = [set(re.findall(r"\w+", layer)) for layer in order.split(">")]
    contract = layers_of("bucketlog.stateless_broker")
    assert shown == [layer - {"__main__"} for layer in contract if layer != {"__main__"}]


def folders_with_what_they_import(graph: grimp.ImportGraph) -> dict[str, set[str]]:
    """Folders by dotted name; a package's own `__init__` and `__main__` do not count."""

    def folder(module: str) -> str | None:
        parent, _, name = module.rpartition(".")
        return None if graph.find_children(module) or name == "__main__" else parent

    found: dict[str, set[str]] = {}
    for module in graph.modules:
        home = folder(module)
        if home is None:
            continue
        others = map(folder, graph.find_modules_directly_imported_by(module))
        found.setdefault(home, set()).update(at for at in others if at and at != home)
    return found


def without_circles(imports: dict[str, set[str]]) -> set[str]:
    """Take away what imports nothing that is left, again and again: circles, and what is above
    them, remain."""
    left = dict(imports)
    while lowest := [name for name, below in left.items() if not below & left.keys()]:
        for name in lowest:
            del left[name]
    return set(left)


def test_folders_do_not_import_in_circles() -> None:
    assert without_circles(folders_with_what_they_import(grimp.build_graph("bucketlog"))) == set()


def test_a_circle_of_folders_is_found() -> None:
    assert without_circles({"a": {"b"}, "b": {"a", "c"}, "c": set(), "d": {"a"}}) == {"a", "b", "d"}
    assert without_circles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == set()
