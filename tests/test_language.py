"""One word for one thing: retired words stay retired; READMEs are short, and name every module."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = ("flows", "tasks", "vina_model", "storage")
RETIRED = {
    r"films?": "video, video file",
    r"Intake": "ImportSession",
    r"ingredients": "dependencies",
    r"(?<!_)undo": "reset",
    r"anew": "again",
    r"of like (length|size|duration)": "similar",
    r"task_id(?!s?\.csv|s?\*)": "article_id",
    r"ELSEWHERE": "NOT_FINGERPRINTED",
    r"spread_by": "parts_runner",
    r"(?i:sight)\.pt": "the demo network",
}
"""Words that are not used any more, and what is used in their place."""
DATA_SET_FORMATS = {"tasks/importers/howto100m.py", "tasks/importers/README.md"}
"""HowTo100M's files have a column `task_id`. The demo world writes such files."""


def texts() -> list[Path]:
    modules = [path for room in ROOMS for path in (ROOT / room).rglob("*") if path.suffix in (".py", ".md", ".html")]
    return [
        *modules,
        *ROOT.glob("*.md"),
        *(ROOT / "tests").rglob("README.md"),
        ROOT / "prefect.yaml",
        ROOT / "Makefile",
    ]


@pytest.mark.parametrize("word", RETIRED)
def test_retired_words_do_not_occur(word: str) -> None:
    pattern = re.compile(rf"\b{word}\b")
    places = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}"
        for path in texts()
        if not ("task_id" in word and (str(path.relative_to(ROOT)) in DATA_SET_FORMATS or "demo_world" in path.parts))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if pattern.search(line)
    ]
    assert places == [], f"use {RETIRED[word]!r}"


def test_the_readme_is_short() -> None:
    lines = (ROOT / "README.md").read_text().splitlines()
    assert len(lines) <= 200 and max(map(len, lines)) <= 120
    start = lines.index("## Glossary")
    rows = [line for line in lines[start : lines.index("## Where things are")] if line.startswith("| ")]
    assert len(rows) - 2 <= 10, "a glossary of at most ten words"


def folders() -> list[Path]:
    return sorted({path.parent for room in ROOMS for path in (ROOT / room).rglob("*.py")})


@pytest.mark.parametrize("folder", folders(), ids=lambda folder: str(folder.relative_to(ROOT)))
def test_every_module_is_in_its_folders_readme(folder: Path) -> None:
    """A folder without a README of its own is described in its parent's."""
    guide = next(parent / "README.md" for parent in (folder, *folder.parents) if (parent / "README.md").exists())
    text = guide.read_text()
    missing = [
        path.name for path in sorted(folder.glob("*.py")) if path.name != "__init__.py" and path.stem not in text
    ]
    assert missing == [], f"{guide.relative_to(ROOT)} does not name them"


def test_readmes_name_only_modules_that_exist() -> None:
    modules = {path.name for room in (*ROOMS, "tests") for path in (ROOT / room).rglob("*.py")} | {"NAME.py"}
    for path in texts():
        if path.suffix == ".md":
            named = set(re.findall(r"`[\w/]*?(\w+\.py)`", path.read_text()))
            assert named <= modules, f"{path.relative_to(ROOT)} names {named - modules}"


def test_every_folders_readme_says_how_to_add_one() -> None:
    guides = [ROOT / "storage", ROOT / "vina_model", ROOT / "flows", ROOT / "tests", ROOT / "tasks"]
    guides += [folder for folder in (ROOT / "tasks").iterdir() if (folder / "README.md").exists()]
    silent = [str(path.relative_to(ROOT)) for path in guides if "ow to add" not in (path / "README.md").read_text()]
    assert silent == []


def test_readmes_are_not_wide() -> None:
    wide = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in texts()
        if path.name == "README.md"
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if len(line) > 120
    ]
    assert wide == []


def test_links_in_readmes_lead_somewhere() -> None:
    for path in texts():
        if path.name != "README.md":
            continue
        for target in re.findall(r"\]\((?!http)([^)#]+)", path.read_text()):
            assert (path.parent / target).exists(), f"{path.relative_to(ROOT)} links to {target}"
