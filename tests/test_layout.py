"""The import arrows: flows -> tasks -> {vina_model, storage}; Prefect in flows alone, torch in the middle alone."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = ("flows", "tasks", "vina_model", "storage")
FORBIDDEN = {
    "flows": {"vina_model", "torch", "tests"},
    "tasks": {"flows", "prefect", "tests"},
    "vina_model": {"flows", "tasks", "storage", "prefect", "boto3", "duckdb", "deltalake", "pathlib", "tests"},
    "storage": {"flows", "tasks", "vina_model", "prefect", "torch", "tests"},
}


def imported_packages(source: str) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.split(".")[0])
    return names


def modules(room: str) -> list[Path]:
    return sorted((ROOT / room).rglob("*.py"))


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_along_the_arrows(room: str) -> None:
    assert modules(room), f"{room} has no modules"
    wrong = {
        f"{path.relative_to(ROOT)} imports {name}"
        for path in modules(room)
        for name in imported_packages(path.read_text()) & FORBIDDEN[room]
    }
    assert wrong == set()


def test_the_check_sees_imports_inside_functions() -> None:
    assert imported_packages("def f():\n    import prefect.flows\n    from torch import nn") == {"prefect", "torch"}


@pytest.mark.parametrize("room", ROOMS)
def test_every_module_says_what_it_is(room: str) -> None:
    silent = [str(path) for path in modules(room) if not ast.get_docstring(ast.parse(path.read_text()))]
    assert silent == []


def test_no_module_of_flows_shadows_a_package() -> None:
    """A deployment's path entrypoint puts flows/ first on sys.path."""
    shadows = {path.stem for path in modules("flows")} & {"storage", "tasks", "vina_model", "prefect", "torch", "numpy"}
    assert shadows == set()


def test_no_module_has_a_name_that_says_nothing() -> None:
    empty = [
        str(path) for room in ROOMS for path in modules(room) if path.stem in ("utils", "helpers", "common", "misc")
    ]
    assert empty == []


def imported_modules(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names


def test_packages_of_tasks_import_each_other_without_cycles() -> None:
    packages = sorted(path.parent.name for path in (ROOT / "tasks").glob("*/__init__.py"))
    arrows: dict[str, set[str]] = {
        package: {
            other
            for path in (ROOT / "tasks" / package).rglob("*.py")
            for other in packages
            if other != package and any(name.startswith(f"tasks.{other}") for name in imported_modules(path))
        }
        for package in packages
    }
    assert_no_cycle(arrows)


def test_packages_of_flows_import_each_other_without_cycles() -> None:
    """A package inside another one counts as one of its own."""
    packages = {path.parent for path in (ROOT / "flows").rglob("__init__.py")}
    names = {package: ".".join(package.relative_to(ROOT).parts) for package in packages}
    package_of = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): names[path.parent] for path in modules("flows")
    }
    arrows: dict[str, set[str]] = {name: set() for name in names.values()}
    for path in modules("flows"):
        imported = {package_of[name] for name in imported_modules(path) if name in package_of}
        arrows[names[path.parent]] |= imported - {names[path.parent]}
    assert arrows["flows.cli"] and arrows["flows.cli.commands"]
    assert_no_cycle(arrows)


def assert_no_cycle(arrows: dict[str, set[str]]) -> None:
    while arrows:
        leaves = {package for package, others in arrows.items() if not others & arrows.keys()}
        assert leaves, f"a cycle among {sorted(arrows)}: {arrows}"
        arrows = {package: others for package, others in arrows.items() if package not in leaves}


def test_no_class_name_occurs_twice() -> None:
    classes: dict[str, list[str]] = {}
    for room in ROOMS:
        for path in modules(room):
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.ClassDef):
                    classes.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert {name: paths for name, paths in classes.items() if len(paths) > 1} == {}
