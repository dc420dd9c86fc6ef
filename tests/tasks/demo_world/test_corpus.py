from pathlib import Path

import pytest

from storage import Store
from tasks.demo_world.corpus import world_of
from tasks.importers.generated_corpora import CONTACT_SHEET
from tasks.importers.settings import ImportSettings
from tasks.importers.sources import import_source
from tasks.importers.stage import IMPORT, import_corpus
from tasks.pipeline.job import Job
from tasks.pipeline.parts import run_here
from tasks.pipeline.stage import reasons_to_run, run_stage

TINY = "demo:short,num_videos=10,num_rendered=1"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """On disk: a cluster's pipeline on S3 is tested in tests/end_to_end."""
    return Store(tmp_path / "store")


def test_a_world_by_its_name() -> None:
    world = world_of("demo:short,num_videos=7,seed=3")
    assert (world.knobs.num_videos, world.knobs.feature_noise, world.seed) == (7, 0.5, 3)


@pytest.mark.parametrize(
    ("corpus", "message"),
    [
        ("demo:huge", "there is no preset 'huge'"),
        ("demo:default,videos", "'videos' is not KNOB=VALUE"),
        ("demo:default,seed=x", "the seed 'x' is not a whole number"),
        ("demo:default,num_videos=0", "knob num_videos is 0"),
        ("demo:default,colour=1", "there is no knob 'colour'"),
    ],
)
def test_mistakes_are_named(corpus: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        import_corpus(Job.of(str(tmp_path / "store"), "run", ImportSettings(corpus=corpus)))


def test_a_world_is_imported_whole_and_once(store: Store) -> None:
    job = Job.of(store.uri, "run-1", ImportSettings(corpus=TINY))
    assert run_stage(job, IMPORT, run_here)[1]
    (video_file,) = store.table("videos").snapshot().where(source="videos").read(["uri"]).to_pylist()
    assert video_file["uri"] in set(store.objects.keys())
    assert store.objects.get(CONTACT_SHEET).startswith(b"\x89PNG")
    assert reasons_to_run(job, IMPORT) == ()
    with pytest.raises(ValueError, match=r"holds demo:short,num_videos=10.*use another store"):
        import_corpus(Job.of(store.uri, "run-2", ImportSettings(corpus="demo:default")))


def test_a_demo_is_not_mixed_with_real_data(store: Store, tmp_path: Path) -> None:
    (tmp_path / "htm_align.json").write_text('{"v": [[1, 0, 2, "a cut"]]}')
    (tmp_path / "HowTo100M_v1.csv").write_text("video_id,category_1,category_2,rank,task_id\nv,a,b,1,7\n")
    import_source(store, "run-0", "howto100m", tmp_path)
    before = store.table("videos").snapshot().version
    assert "the store has other data" in import_corpus(Job.of(store.uri, "run-1", ImportSettings(corpus=TINY)))
    assert store.table("videos").snapshot().version == before


def test_a_folder_that_changes_is_read_again(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "corpus/howto100m"
    folder.mkdir(parents=True)
    listed = "video_id,category_1,category_2,rank,task_id\nv,a,b,1,7\n"
    (folder / "HowTo100M_v1.csv").write_text(listed)
    job = Job.of(store.uri, "run-1", ImportSettings(corpus=str(tmp_path / "corpus")))
    run_stage(job, IMPORT, run_here)
    assert reasons_to_run(job, IMPORT) == ()
    (folder / "HowTo100M_v1.csv").write_text(listed + "w,a,b,2,7\n")
    assert reasons_to_run(job, IMPORT) == ("corpus changed",)
    run_stage(job, IMPORT, run_here)
    assert store.table("videos").snapshot().num_rows == 2
    store.table("videos").retire({"source": "howto100m"})
    assert reasons_to_run(job, IMPORT) == ("videos, which it wrote, changed",)


def test_no_package_imports_the_demo_world() -> None:
    """It registers itself by name; only the command `vina demo` imports it."""
    root = Path(__file__).parents[3]
    modules = [path for room in ("tasks", "storage", "vina_model") for path in (root / room).rglob("*.py")]
    imports = [path for path in modules if "from tasks.demo_world" in path.read_text()]
    assert imports and all(path.is_relative_to(root / "tasks/demo_world") for path in imports)
