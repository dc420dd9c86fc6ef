import json
import math
from pathlib import Path
from typing import Any

import pytest
import yaml
from prefect import get_client
from prefect.client.schemas.filters import ArtifactCollectionFilter, ArtifactCollectionFilterKey
from prefect.exceptions import ParameterTypeError

from flows import stages as pipeline_stages
from flows.ablations import ablations
from flows.full_pipeline import vina
from flows.parts import run_part
from flows.stages import STAGES, choose_stages
from storage import Store
from storage.catalogue import Catalogue
from tasks.pipeline.job import Job
from tasks.pipeline.parts import RunParts
from tasks.pipeline.stage import Dependencies, Stage

ROOT = Path(__file__).parents[2]
TINY = "demo:short,num_videos=10,num_rendered=1,duration_s=20,duration_p10_s=15,duration_p90_s=30"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """On disk: a cluster's pipeline on S3 is tested in tests/end_to_end."""
    return Store(tmp_path / "store")


def runs(store: Store) -> list[dict[str, Any]]:
    return store.table("runs").snapshot().read().to_pylist()


def stage_of(name: str, work: Any) -> Stage:
    """A stage that always has something to do."""
    return Stage(name, work, lambda job: Dependencies(must_run_because="it is a test"), "1", is_shared=True)


def test_the_flow_is_called_vina() -> None:
    assert vina.name == "vina"


def test_a_run_leaves_its_record(prefect_server: None, store: Store) -> None:
    assert vina(store=store.uri, run_id="first") == "first"
    (row,) = runs(store)
    assert (row["run_id"], row["state"], row["error"]) == ("first", "completed", None)
    assert row["stages"] == [stage.name for stage in STAGES]
    told = json.loads(row["configuration"])
    assert (told["store"], told["settings"]["training"]["gamma"], told["dispatch"]) == (store.uri, 0.65, "here")
    assert row["started_at"] < row["finished_at"]
    assert str(row["code_version"]).startswith("0.")


def test_a_demo_world_goes_through_all_stages(prefect_server: None, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    vina(store=store.uri, corpus=TINY, overrides={"features": {"size_px": 32}}, run_id="demo")
    (video_file,) = store.table("videos").snapshot().where(source="videos").read(["duration_s", "uri"]).to_pylist()
    assert video_file["uri"] in set(store.objects.keys()), "it is in the store, for workers elsewhere"
    made = store.table("features").snapshot().where(backbone="s3d-milnce")
    assert made.num_rows == math.ceil(video_file["duration_s"] - 0.01)
    counts = {table.name: table.snapshot().num_rows for table in store.tables()}
    filled = ("videos", "narrations", "articles", "steps", "annotations", "features", "votes", "pairs", "completions")
    assert all(counts[name] for name in filled)
    assert {shard.written_by for shard in store.table("steps").snapshot().shards} == {"demo"}
    vina(store=store.uri, corpus=TINY, stages=["import"], run_id="later")
    with Catalogue(store) as catalogue:
        assert catalogue.query("SELECT run_id FROM measured_runs")["run_id"].to_pylist() == ["demo"]


def test_a_run_has_a_name_of_its_own(prefect_server: None, store: Store) -> None:
    names = {vina(store=store.uri, stages=["report"]) for _ in range(2)}
    assert len(names) == 2 and {row["run_id"] for row in runs(store)} == names


def test_what_a_stage_declares_is_linked_in_prefects_ui(prefect_server: None, store: Store) -> None:
    vina(store=store.uri, stages=["report"], run_id="linked")
    newest = ArtifactCollectionFilter(key=ArtifactCollectionFilterKey(any_=["vina-report"]))
    with get_client(sync_client=True) as client:
        (link,) = client.read_latest_artifacts(artifact_filter=newest)
    assert f"({store.uri}/objects/reports/linked.html)" in str(link.data)


def test_every_stage_has_a_deployment_and_a_line_in_the_readme() -> None:
    declared = yaml.safe_load((ROOT / "prefect.yaml").read_text())["deployments"]
    parameters = {entry["name"]: entry.get("parameters", {}) for entry in declared}
    stages_of = {name: given["stages"] for name, given in parameters.items() if "stages" in given}
    assert list(stages_of.items()) == [(stage.name, [stage.name]) for stage in STAGES], "in the pipeline's order"
    flows = {entry["entrypoint"] for entry in declared}
    assert flows == {f"{each.fn.__module__}.{each.fn.__name__}" for each in (vina, ablations, run_part)}
    readme = (ROOT / "README.md").read_text()
    assert all(f"| `vina/{stage.name}` |" in readme for stage in STAGES)


def test_a_failing_stage_fails_the_run_and_is_recorded(
    prefect_server: None, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def explode(job: Job, run_parts: RunParts) -> str:
        raise RuntimeError("the stage broke")

    seen: list[str] = []

    def note(job: Job, run_parts: RunParts) -> str:
        seen.append(job.run_id)
        return "noted"

    stages = (stage_of("import", note), stage_of("features", explode), stage_of("report", note))
    monkeypatch.setattr(pipeline_stages, "STAGES", stages)
    with pytest.raises(RuntimeError, match="the stage broke"):
        vina(store=store.uri, run_id="doomed")
    assert seen == ["doomed"]
    (row,) = runs(store)
    assert (row["state"], row["error"]) == ("failed", "RuntimeError: the stage broke")
    done = store.table("completions").snapshot().shards
    assert {shard.constants["stage"] for shard in done} == {"import"}
    vina(store=store.uri, run_id="doomed", stages=["report"])
    (row,) = runs(store)
    assert (row["state"], row["error"], row["stages"]) == ("completed", None, ["report"])


def test_stages_run_in_the_pipelines_order(monkeypatch: pytest.MonkeyPatch) -> None:
    stages = tuple(stage_of(name, lambda job, run_parts: "") for name in ("a", "b", "c"))
    monkeypatch.setattr(pipeline_stages, "STAGES", stages)
    assert [stage.name for stage in choose_stages(["c", "a"])] == ["a", "c"]
    assert [stage.name for stage in choose_stages(None)] == ["a", "b", "c"]
    with pytest.raises(ValueError, match="no stage 'd'; the stages are a, b, c"):
        choose_stages(["a", "d"])


@pytest.mark.parametrize("run_id", ["a b", "../up", "x" * 65, "-x"])
def test_a_wrong_run_id_is_refused(prefect_server: None, tmp_path: Path, run_id: str) -> None:
    with pytest.raises((ValueError, ParameterTypeError), match="run_id"):
        vina(store=f"{tmp_path}/store", run_id=run_id)
    assert not (tmp_path / "store").exists()
