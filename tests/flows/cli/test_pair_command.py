"""`vina pair`: the vote of one video, and of all."""

import json
from pathlib import Path

import pytest

from flows.cli.main import main
from storage import Store
from tests.flows.cli.command import vina_process
from tests.tasks.pairing.corpora import FakeEncoder, add_articles, add_narrations, add_videos, make_pairs, versions_of


@pytest.fixture
def spoken(tmp_path: Path) -> str:
    """A store with narrations and articles, and no votes yet."""
    store = Store(tmp_path / "it's spoken")
    add_articles(store, "wikihow", {"wikihow/1": "Boil an Egg", "wikihow/2": "Change a Tire"})
    narrations = ["put the eggs in boiling water", "take the eggs out", "I had a flat tire today"]
    add_narrations(store, "howto100m", {"aXp6zgcka8A": narrations, "other": ["hello"]})
    add_videos(store, "howto100m", {"aXp6zgcka8A": "wikihow/1", "other": "wikihow/2"})
    return store.uri


def test_one_videos_vote_needs_no_votes_of_others(spoken: str, capsys: pytest.CaptureFixture[str]) -> None:
    answer = vina_process("pair", "aXp6zgcka8A", "--store", spoken)
    assert answer.returncode == 0, answer.stderr
    assert "all-MiniLM-L6-v2@" in answer.stdout and "put the eggs in boiling water" in answer.stdout
    assert "The packaged all-MiniLM-L6-v2 is used" in answer.stderr
    assert main(["pair", "aXp6zgcka8A", "--json", "--store", spoken]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(row["title"], row["votes"]) for row in found["ranking"]] == [("Boil an Egg", 2), ("Change a Tire", 1)]
    assert [ballot["article_id"] for ballot in found["ballots"]] == ["wikihow/1", "wikihow/1", "wikihow/2"]
    assert Store(spoken).table("sentence_embeddings").snapshot().version == -1, "a look-up writes nothing"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "the store has no votes: run `vina run --stages pairing` first"),
        (("aXp6zgcka8B",), "no narrations of a video 'aXp6zgcka8B'; the nearest ids that have: aXp6zgcka8A, other"),
        (("aXp6zgcka8A", "--articles", "nowhere"), "no articles of nowhere with steps"),
        (("aXp6zgcka8A", "--encoder", "no/model"), "the model no/model is not on this machine"),
    ],
)
def test_wrong_questions_about_pairs(
    spoken: str, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    assert main(["pair", *arguments, "--store", spoken]) == 1
    assert message in capsys.readouterr().err


def test_all_votes_are_printed_and_drawn(
    spoken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    FakeEncoder().install(monkeypatch)
    make_pairs(Store(spoken))
    assert main(["pair", "--store", spoken]) == 0
    output = capsys.readouterr().out
    assert "titles with most votes" in output and "top5 percent" in output
    for kind, header in ((".png", b"\x89PNG\r\n"), (".svg", b"<?xml")):
        path = tmp_path / f"a plot{kind}"
        assert main(["pair", "--plot", str(path), "--json", "--store", spoken]) == 0
        assert json.loads(capsys.readouterr().out)["pairing_agreement"][0]["videos"] == 2
        assert path.read_bytes().startswith(header) and path.stat().st_size > 5_000
    assert main(["pair", "--plot", str(tmp_path / "no/folder.png"), "--store", spoken]) == 1
    assert "No such file" in capsys.readouterr().err
    assert main(["pair", "--plot", str(tmp_path / "plot.doc"), "--store", spoken]) == 1
    assert "png" in capsys.readouterr().err and list(tmp_path.glob(".*")) == []


DASHED = ("-Xp6zgcka8A", "--p6zgcka8A", "-0123456789", "-_p6-gcka8-")


@pytest.mark.parametrize("video", DASHED)
def test_a_videos_id_may_begin_with_a_dash(
    spoken: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], video: str
) -> None:
    FakeEncoder().install(monkeypatch)
    add_narrations(Store(spoken), "howto100m", {video: ["hello"]}, "dashed")
    for arguments in ((video, "--store", spoken), ("--store", spoken, video), ("--store", spoken, "--", video)):
        assert main(["pair", *arguments]) == 0
        assert f"{video}, encoder fake@1" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        ("pair", "--jsno"),
        ("pair", "-x"),
        ("pair", "aXp6zgcka8A", "-Xp6zgcka8A"),
        ("pair", "-Xp6zgcka8A", "--jsno"),
        ("pair", "-Xp6zgcka8A", "-Yp6zgcka8A"),
        ("tables", "-Xp6zgcka8A"),
        ("sql", "-Xp6zgcka8A"),
    ],
)
def test_other_unknown_options_are_refused(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert "unrecognized arguments: -" in capsys.readouterr().err


def test_a_videos_votes_are_those_that_were_counted_unless_others_are_asked_for(
    spoken: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store(spoken)
    add_articles(store, "youwikihow", {"youwikihow/1": "Fry an Egg"})
    FakeEncoder().install(monkeypatch, "counted@1")
    make_pairs(store)
    encoder, before = FakeEncoder().install(monkeypatch, "asked@2"), versions_of(store)

    def ask(*arguments: str) -> dict[str, list[dict[str, str]]]:
        assert main(["pair", "aXp6zgcka8A", "--json", "--store", spoken, *arguments]) == 0
        return dict(json.loads(capsys.readouterr().out))

    counted = ask()
    assert counted["encoder"] == "counted@1" and len(counted["ballots"]) == 3 and encoder.texts == []
    assert ask("--encoder", "mine")["encoder"] == "asked@2" and "put the eggs in boiling water" in encoder.texts
    other = ask("--articles", "youwikihow")
    assert other["encoder"] == "asked@2" and {ballot["title"] for ballot in other["ballots"]} == {"Fry an Egg"}
    assert versions_of(store) == before
