"""The command `vina`: its arguments, output and exit codes; what only a process shows is tested with processes."""

import csv
import json
import os
import pty
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from flows.cli.main import _parser
from storage import Store
from storage.schemas import TABLES
from tests.flows.cli.command import ROOT, vina, vina_process
from tests.samples import commit_features, commit_votes, random_videos, video_ids

COMMANDS = (
    "run", "import", "forget", "demo", "pair", "ablate", "results", "export", "score", "stats", "tables", "describe",
    "sql", "gc",
)  # fmt: skip


@pytest.fixture
def filled(tmp_path: Path) -> str:
    store = Store(tmp_path / "a store")
    commit_votes(store, "0", "v1", "v2", run="run-7")
    commit_features(store, "0", random_videos(["v1"], width=4))
    return store.uri


@pytest.mark.parametrize(
    ("arguments", "code", "output", "error"),
    [
        (("describe", "--help"), 0, "example:\n  vina describe", ""),
        (("tables", "--store", "ftp://x/y"), 1, "", "only folders and s3"),
        (("describe", "vote"), 2, "", "no table 'vote'"),
        (("fly",), 2, "", "invalid choice"),
    ],
)
def test_a_process_ends_with_the_exit_code_of_the_command(
    arguments: tuple[str, ...], code: int, output: str, error: str
) -> None:
    answer = vina_process(*arguments)
    assert answer.returncode == code and output in answer.stdout and error in answer.stderr
    assert "Traceback" not in answer.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command: str) -> None:
    answer = vina(command, "--help")
    assert answer.returncode == 0
    assert re.search(rf"example:\n  vina {command}", answer.stdout) and "--store URI" in answer.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_every_example_parses(command: str) -> None:
    example = vina(command, "--help").stdout.split("example:\n")[1].strip()
    assert callable(_parser().parse_args(shlex.split(example)[1:]).command)


def test_a_demo_world_is_written_and_imported(tmp_path: Path) -> None:
    corpus, store = str(tmp_path / "corpus"), str(tmp_path / "store")
    written = vina("demo", corpus, "--seed", "3", "--set", "num_videos=10", "--set", "num_rendered=0")
    assert written.returncode == 0 and "24 articles, 10 videos" in written.stdout
    again = vina("demo", corpus)
    assert again.returncode == 1 and "exists already" in again.stderr
    answer = vina("import", "htstep", f"{corpus}/htstep", "--store", store)
    assert answer.returncode == 0 and "videos: 10 rows read, 10 kept" in answer.stdout
    assert "missing: htstep annotations without features: 10" in answer.stdout
    summary = json.loads(vina("import", "htstep", f"{corpus}/htstep", "--store", store, "--json").stdout)
    assert summary["kept"] == {} and summary["present"]["videos"] == 10 and summary["run_id"]
    forgotten = vina("forget", "htstep", "--store", store)
    assert forgotten.returncode == 0 and "videos: 10 rows of htstep removed" in forgotten.stdout
    assert "no rows of htstep" in vina("forget", "htstep", "--store", store).stdout
    runs = vina("sql", "SELECT stages, state FROM runs", "--store", store, "--format", "json")
    assert json.loads(runs.stdout) == 2 * [{"stages": ["import"], "state": "completed"}]


def test_an_import_that_meets_a_damaged_file_says_so_and_fails(tmp_path: Path) -> None:
    path, store = tmp_path / "sentencified.json", str(tmp_path / "store")
    path.write_text('{"a": {"text": ["x", ""], "start": [0, 1], "end": [1, 2]}, "b": {"te')
    answer = vina("import", "howto100m", str(path), "--store", store)
    assert answer.returncode == 1 and "narrations: 2 rows read, 1 kept" in answer.stdout
    assert "NOT READ TO ITS END" in answer.stdout and "line 1" in answer.stdout
    why = re.search(r'reasons: vina sql "(.*)" --store', answer.stdout)
    assert why
    found = vina("sql", why[1], "--store", store, "--format", "json")
    assert [row["reason"] for row in json.loads(found.stdout)] == ["empty text", "malformed JSON"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("import", "imagenet", "."), 2, "invalid choice: 'imagenet'"),
        (("import", "crosstask", "nowhere"), 1, "there is nothing at nowhere: name a file or a folder"),
        (("forget", "features"), 1, "there is no store at"),
        (("demo", "x", "--set", "noise=1"), 1, "there is no knob 'noise'"),
        (("demo", "x", "--set", "noise"), 1, "expected KNOB=VALUE"),
        (("demo", "x", "--seed", "-1"), 2, "'-1' is not a whole number"),
    ],
)
def test_wrong_imports_and_worlds(tmp_path: Path, arguments: tuple[str, ...], code: int, message: str) -> None:
    answer = vina(*arguments, VINA_STORE=str(tmp_path / "store"))
    assert answer.returncode == code and message in answer.stderr and "Traceback" not in answer.stderr
    assert not Path("x").exists()


def test_the_knobs_are_explained() -> None:
    answer = vina("demo", "x", "--set", "help")
    assert answer.returncode == 0 and "paraphrase_rate = 0.7 (0 to 1): How often" in answer.stdout


def test_the_tables_and_what_they_hold(filled: str) -> None:
    answer = vina("tables", "--store", filled)
    assert answer.returncode == 0 and "run-7" in answer.stdout
    counts = {row["table"]: row["rows"] for row in json.loads(vina("tables", "--json", "--store", filled).stdout)}
    assert (counts["votes"], counts["runs"], len(counts)) == (2, 0, len(TABLES))


def test_describe_says_what_a_column_means(filled: str) -> None:
    answer = vina("describe", "features", "--store", filled)
    assert (
        "frames_per_clip" in answer.stdout
        and "vector of float16" in answer.stdout
        and "1 shards by run run-1" in answer.stdout
    )
    assert vina("describe", "features", "--store", f"{filled}/elsewhere").returncode == 0


def test_the_store_is_named_by_option_variable_or_default(filled: str, tmp_path: Path) -> None:
    count = "SELECT count(*) AS n FROM votes"
    assert vina("sql", count, "--format", "csv", "--store", filled).stdout == "n\n2\n"
    assert vina("sql", count, "--format", "csv", VINA_STORE=filled).stdout == "n\n2\n"
    missing = vina("tables", VINA_STORE=str(tmp_path / "nowhere"))
    assert missing.returncode == 1 and "there is no store at" in missing.stderr and "vina run" in missing.stderr
    assert not (tmp_path / "nowhere").exists()


def test_answers_in_every_format(filled: str, tmp_path: Path) -> None:
    query = "SELECT video_id, votes, 'NaN'::FLOAT AS x FROM votes ORDER BY 1"
    assert "│ v1" in vina("sql", query, "--store", filled).stdout
    rows = list(csv.reader(vina("sql", query, "--store", filled, "--format", "csv").stdout.splitlines()))
    assert rows == [["video_id", "votes", "x"], ["v1", "3", "nan"], ["v2", "3", "nan"]]
    records = json.loads(vina("sql", query, "--store", filled, "--format", "json").stdout)
    assert records == [{"video_id": "v1", "votes": 3, "x": None}, {"video_id": "v2", "votes": 3, "x": None}]
    for form, read in (
        ("parquet", lambda path: pq.read_table(path).num_rows),
        ("json", lambda p: len(json.loads(p.read_text()))),
    ):
        path = tmp_path / f"it's.{form}"
        assert vina("sql", query, "--store", filled, "--format", form, "--output", str(path)).returncode == 0
        assert read(path) == 2


def test_the_ending_of_the_output_names_the_format(filled: str, tmp_path: Path) -> None:
    assert vina("sql", "SELECT 1 AS a", "--store", filled, "--output", str(tmp_path / "a.csv")).returncode == 0
    assert (tmp_path / "a.csv").read_text() == "a\n1\n"
    assert vina("sql", "SELECT 1 AS a", "--store", filled, "--output", str(tmp_path / "a.txt")).returncode == 0
    assert "│     1 │" in (tmp_path / "a.txt").read_text()


LATE_ERROR = "SELECT if(range = 250000, error('boom'), range) AS x FROM range(300000)"  # a table shows the first rows


@pytest.mark.parametrize(
    ("form", "query"),
    [(form, "DROP VIEW votes") for form in ("table", "csv", "json", "parquet")]
    + [(form, LATE_ERROR) for form in ("csv", "json", "parquet")],
)
def test_a_failed_query_leaves_the_output_as_it_was(filled: str, tmp_path: Path, form: str, query: str) -> None:
    (tmp_path / "out").write_text("keep")
    answer = vina("sql", query, "--store", filled, "--format", form, "--output", str(tmp_path / "out"))
    assert answer.returncode == 2 and "Traceback" not in answer.stderr
    assert (tmp_path / "out").read_text() == "keep" and [path.name for path in tmp_path.glob("*out*")] == ["out"]


def test_a_type_that_parquet_lacks_is_named(filled: str, tmp_path: Path) -> None:
    answer = vina("sql", "SELECT INTERVAL 1 DAY AS x", "--store", filled, "--output", str(tmp_path / "a.parquet"))
    assert answer.returncode == 2 and "interval" in answer.stderr and "Traceback" not in answer.stderr
    assert not (tmp_path / "a.parquet").exists()


def test_output_is_appended_to_what_a_script_wrote(filled: str, tmp_path: Path) -> None:
    command = f"{sys.executable} -m flows.cli sql 'SELECT 1 AS a' --format csv --store '{filled}'"
    script = f"echo before > out; {command} >> out; echo after >> out"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    subprocess.run(["bash", "-c", script], cwd=tmp_path, check=True, env=environment)
    assert (tmp_path / "out").read_text() == "before\na\n1\nafter\n"


def test_many_rows_are_cut_and_it_says_so(filled: str) -> None:
    answer = vina("sql", "FROM range(5000)", "--store", filled).stdout
    assert "999" in answer and "│  1000 │" not in answer and "the first 1000 rows" in answer


@pytest.mark.parametrize("command", ["sql 'FROM range(300000)' --format csv", "tables", "describe votes"])
def test_a_reader_that_stops_reading_is_no_error(filled: str, command: str) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    pipe = f"set -o pipefail; {sys.executable} -m flows.cli {command} --store '{filled}' | true"
    answer = subprocess.run(["bash", "-c", pipe], capture_output=True, text=True, check=False, env=environment)
    assert (answer.stderr, answer.returncode) == ("", 0)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((), 2, "COMMAND"),
        (("fly",), 2, "invalid choice"),
        (("describe", "vote"), 2, "no table 'vote'; the tables are"),
        (("sql", "SELEKT 1"), 2, "Parser Error"),
        (("sql", "FROM nothing"), 2, "nothing does not exist"),
        (("sql", "DROP TABLE votes"), 2, "read-only"),
        (("sql", "SELECT 1", "--format", "xml"), 2, "invalid choice"),
        (("sql", "SELECT 1", "--format", "csv", "--output", "/no/such/folder/x"), 1, "/no/such/folder/x"),
        (("sql", "--output", "x.csv"), 2, "--output needs a query"),
        (("gc", "--older-than", "-1"), 2, "not a whole number"),
        (("run", "--stages", "fly"), 2, "no stage 'fly'; the stages are"),
        (("run", "--run-id", "a b"), 2, "use up to 64 letters"),
        (("run", "--workers", "0"), 2, "argument --workers: '0' is given: it must be greater than or equal to 1"),
        (("run", "--workers", "2000"), 2, "it must be less than or equal to 1024"),
        (("run", "--devices", "two"), 2, "argument --devices: 'two' is given: it must be a valid integer"),
        (("ablate", "labels", "--workers", "-1"), 2, "it must be greater than or equal to 1"),
        (("run", "--set", "nosuch=1"), 2, "there is no setting 'nosuch'"),
        (("plan", "--set", "gamma=7"), 2, "setting gamma is '7': it must be less than or equal to 1"),
        (("ablate", "labels", "--set", "gamma"), 2, "NAME=VALUE is expected"),
        (("plan", "--set", "import.corpus=a", "--corpus", "b"), 2, "the corpus is given twice, as 'b' and as"),
        (("pair", "--encoder", "nosuch"), 2, "--encoder and --articles are about one video: give its id, VIDEO"),
        (("pair", "v1", "--plot", "x.png"), 2, "--plot is about all videos: leave VIDEO out"),
    ],
)
def test_mistakes_get_one_line_and_an_exit_code(
    filled: str, arguments: tuple[str, ...], code: int, message: str
) -> None:
    answer = vina(*arguments, VINA_STORE=filled)
    assert answer.returncode == code
    assert message in answer.stderr and "Traceback" not in answer.stderr


def test_a_store_of_another_schema_version_is_no_wrong_command(filled: str) -> None:
    (log,) = (Path(filled) / "votes/_delta_log").glob("*0.json")
    log.write_text(
        log.read_text().replace(f'"vina.schema_version":"{TABLES["votes"].version}"', '"vina.schema_version":"0"')
    )
    answer = vina("sql", "FROM votes", "--store", filled)
    assert answer.returncode == 1 and "has schema version 0; this code reads" in answer.stderr


def test_an_unknown_scheme_and_a_file_for_a_store(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for uri, message in (("ftp://x/y", "only folders and s3"), (str(tmp_path / "file"), "is a file")):
        answer = vina("tables", "--store", uri)
        assert answer.returncode == 1 and message in answer.stderr and "Traceback" not in answer.stderr


def test_statements_from_standard_input(filled: str) -> None:
    answer = vina(
        "sql",
        "--store",
        filled,
        "--format",
        "csv",
        stdin="\nSELECT 1 AS a; -- one;\nSELECT\n2 AS b; SELECT 3 AS c;\nSELECT 4 AS d",
    )
    assert (answer.stdout, answer.returncode) == ("a\n1\nb\n2\nc\n3\nd\n4\n", 0)
    answer = vina("sql", "--store", filled, "--format", "csv", stdin="DROP VIEW votes;\nSELECT 1 AS a;")
    assert (answer.stdout, answer.returncode) == ("a\n1\n", 2)
    assert "read-only" in answer.stderr


def test_the_prompt_on_a_terminal(filled: str) -> None:
    run_here, there = pty.openpty()
    command = [sys.executable, "-m", "flows.cli", "sql", "--store", filled]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "TERM": "dumb"}
    process = subprocess.Popen(command, stdin=there, stdout=there, stderr=there, env=environment, close_fds=True)
    os.close(there)
    os.write(run_here, b"SELECT count(*) AS voters\nFROM votes;\nDROP VIEW votes;\n.quit\n")
    output = b""
    while True:
        try:
            output += os.read(run_here, 4096)
        except OSError:
            break
    os.close(run_here)
    text = output.decode()
    assert process.wait() == 0
    assert "vina> " in text and "  ... " in text and "│      2 │" in text and "read-only" in text


def test_gc_from_the_command_line(filled: str) -> None:
    store = Store(filled)
    commit_votes(store, "0", "v3", fingerprint="b")
    assert "1 files would be deleted" in vina("gc", "--older-than", "0", "--dry-run", "--store", filled).stdout
    assert vina("gc", "--store", filled).stdout == "0 files were deleted\n"
    assert "1 files were deleted" in vina("gc", "--older-than", "0", "--store", filled).stdout
    assert video_ids(store) == ["v3"]


def test_s3_works_from_the_command_line(s3_uri: str) -> None:
    commit_votes(Store(s3_uri), "0", "v1")
    answer = vina_process("sql", "SELECT video_id FROM votes", "--format", "csv", "--store", s3_uri)
    assert answer.stdout == "video_id\nv1\n"
    missing = vina_process("tables", "--store", "s3://no-such-bucket/x")
    assert missing.returncode == 1 and "the bucket does not exist" in missing.stderr


@pytest.mark.slow
def test_a_run_from_the_command_line(tmp_path: Path) -> None:
    options = ("--store", str(tmp_path / "store"), "--run-id", "mine")
    answer = vina_process("run", *options, PREFECT_HOME=str(tmp_path / "prefect"))
    assert answer.returncode == 0, answer.stderr
    assert "run mine completed" in answer.stdout
    (row,) = Store(tmp_path / "store").table("runs").snapshot().read().to_pylist()
    assert (row["run_id"], row["state"]) == ("mine", "completed")
    assert "test-secret" not in answer.stdout + answer.stderr


@pytest.mark.parametrize("arguments", [["--help"], ["sql", "SELECT 1"], ["tables"]])
def test_commands_that_need_no_model_load_none(filled: str, arguments: list[str]) -> None:
    """Torch, Prefect and gensim take seconds to import; drawing is the demo world's own affair."""
    store = [] if "--help" in arguments else ["--store", filled]
    code = (
        "import atexit, sys\n"
        "slow = {'torch', 'prefect', 'gensim', 'tasks.demo_world.files'}\n"
        "atexit.register(lambda: print(*sorted(slow & set(sys.modules)), file=sys.stderr))\n"
        f"from flows.cli.main import main\nmain({[*arguments, *store]!r})"
    )
    answer = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[3], capture_output=True, text=True)
    assert answer.returncode == 0 and answer.stderr.strip() == "" and answer.stdout
