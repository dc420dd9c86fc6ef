import json
from pathlib import Path

import pytest

from storage import Store
from tasks.grounding.articles import article_in, article_of, read_article
from tasks.pipeline.job import Job


@pytest.mark.parametrize(
    ("name", "text", "title", "steps"),
    [
        ("a.txt", "# Fry an Onion\n1. Chop it\n\n2) Fry it\n", "Fry an Onion", ["Chop it", "Fry it"]),
        ("onion.md", "- Chop it\n* Fry it\n", "onion", ["Chop it", "Fry it"]),
        ("a.txt", "\ufeff3 eggs are boiled\r\nPeel them\r\n", "a", ["3 eggs are boiled", "Peel them"]),
        ("a.json", '{"title": "Fry", "steps": ["Chop", {"headline": "Fry"}]}', "Fry", ["Chop", "Fry"]),
        ("b.json", '["Chop", "Fry"]', "b", ["Chop", "Fry"]),
    ],
)
def test_files_of_steps(tmp_path: Path, name: str, text: str, title: str, steps: list[str]) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    found = read_article(tmp_path / name)
    assert (found.title, found.steps) == (title, steps)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("none.txt", None, "cannot be read: No such file"),
        ("bytes.txt", b"\xff\xfe\x00", "not UTF-8"),
        ("empty.txt", b"\n\n", "has no steps"),
        ("broken.json", b"{", "is not JSON"),
        ("odd.json", b'{"title": "x"}', "has no list of steps"),
        ("number.json", b"3", "has no list of steps"),
        ("odd.json", b'{"steps": [1]}', "a step must be a text, not '1'"),
    ],
)
def test_files_that_are_no_articles(tmp_path: Path, name: str, content: bytes | None, message: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_article(tmp_path / name)


def test_steps_as_they_are_typed() -> None:
    assert article_of(["Chop it; Fry it\nEat it", "Wash up"]).steps == ["Chop it", "Fry it", "Eat it", "Wash up"]
    with pytest.raises(ValueError, match="--steps has no steps"):
        article_of([" ; "])


def test_articles_of_the_store_by_id_by_bare_id_and_by_title(trained: Job) -> None:
    store = Store(trained.store)
    row = store.table("articles").snapshot().where(source="wikihow").read().to_pylist()[0]
    steps = store.table("steps").snapshot().where(source="wikihow").read().to_pylist()
    steps = sorted((step for step in steps if step["article_id"] == row["article_id"]), key=lambda step: step["row"])
    own = [step["headline"] for step in steps]
    bare = row["article_id"].partition("/")[2]
    for name in (row["article_id"], bare, row["title"], f"How to {row['title'].lower()}!"):
        found = article_in(store, name)
        assert (found.article_id, found.title, found.steps) == (row["article_id"], row["title"], own), name
    with pytest.raises(ValueError, match=f"no article '{bare}x' with steps; the nearest: .*{row['title']}"):
        article_in(store, bare + "x")
    with pytest.raises(ValueError, match=r"no article .a'; b. with steps"):
        article_in(store, "a'; b")


def test_json_is_not_trusted_to_be_flat(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"title": ["x"], "steps": [["y"]]}))
    with pytest.raises(ValueError, match="a step must be a text"):
        read_article(tmp_path / "a.json")
