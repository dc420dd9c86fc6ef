"""The stage `import`: every source by its name, and a whole corpus folder at once.

A corpus folder has a sub-folder for each source it brings (`howto100m/`, `wikihow/`, ...); under `features/` there
is one for each backbone.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from storage import Store
from tasks.importers import crosstask, features, howto100m, htm_align, htstep, videos, wikihow, youwikihow
from tasks.importers.files import Files
from tasks.importers.intake import Intake, Summary
from tasks.job import Job


@dataclass(frozen=True)
class Options:
    """What may be asked of an import."""

    backbone: str | None = None
    """features: the network's name (default: the folder's name)."""
    upload: bool = False
    """videos: copy the files into the store."""
    replace: bool = False
    """Put this in the place of what the source brought before."""


@dataclass(frozen=True)
class Source:
    """A kind of data that can be imported."""

    name: str
    read: Callable[[Files, Intake, Store, Options], None]
    expected: str
    """The files it knows."""


def _plain(read: Callable[[Files, Intake], None]) -> Callable[[Files, Intake, Store, Options], None]:
    return lambda files, intake, store, options: read(files, intake)


def _read_features(files: Files, intake: Intake, store: Store, options: Options) -> None:
    backbone = options.backbone or files.path.resolve().name
    known = store.table("features").snapshot().where(backbone=backbone)
    vectors = known.dataset().head(1, columns=["vector"])["vector"] if known.shards and not options.replace else []
    features.import_features(files, intake, backbone, width=len(vectors[0].as_py()) // 2 if len(vectors) else None)


def _read_videos(files: Files, intake: Intake, store: Store, options: Options) -> None:
    videos.import_videos(files, intake, store.objects.upload if options.upload else None)


SOURCES = {
    source.name: source
    for source in (
        Source("howto100m", _plain(howto100m.import_howto100m), howto100m.EXPECTED),
        Source("wikihow", _plain(wikihow.import_wikihow), wikihow.EXPECTED),
        Source("crosstask", _plain(crosstask.import_crosstask), crosstask.EXPECTED),
        Source("htstep", _plain(htstep.import_htstep), htstep.EXPECTED),
        Source("htm-align", _plain(htm_align.import_htm_align), htm_align.EXPECTED),
        Source("youwikihow", _plain(youwikihow.import_youwikihow), youwikihow.EXPECTED),
        Source("features", _read_features, features.EXPECTED),
        Source("videos", _read_videos, videos.EXPECTED),
    )
}


def import_source(
    store: Store,
    run_id: str,
    name: str,
    path: Path,
    options: Options | None = None,
    on_progress: Callable[[Summary], None] = lambda summary: None,
) -> Summary:
    """Import what there is at a path; what was kept is in the store even where an error follows."""
    if name not in SOURCES:
        raise ValueError(f"there is no source {name!r}; the sources are {', '.join(SOURCES)}")
    options = options or Options()
    files = Files(path)
    with Intake(store, run_id, name, path, on_progress, options.replace) as intake:
        SOURCES[name].read(files, intake, store, options)
    if not intake.summary.num_files:
        raise ValueError(f"nothing to import at {path}: {name} knows {SOURCES[name].expected}")
    return intake.summary


def import_corpus(job: Job) -> str:
    """Import every source that the job's corpus folder has."""
    if job.corpus is None:
        return "no corpus folder is given: the store keeps what it has"
    corpus = Path(job.corpus)
    places = [(name, corpus / name) for name in SOURCES if name != "features"]
    places += [("features", folder) for folder in sorted((corpus / "features").glob("*")) if folder.is_dir()]
    found = [(name, place) for name, place in places if place.is_dir()]
    if not found:
        raise ValueError(
            f"{corpus} has none of the folders {', '.join(SOURCES)}: `vina demo {corpus}` makes an example"
        )
    store = Store(job.store)
    lines = [line for name, place in found for line in summary_lines(import_source(store, job.run_id, name, place))]
    return "\n".join(["", *lines, *missing_lines(store)])


def summary_lines(summary: Summary) -> list[str]:
    """What an import did, for people."""
    lines = [f"{summary.source} from {summary.path}"]
    for table in summary.read | summary.kept:
        present = (
            f", {summary.present[table]:,} were there already and stay (--replace takes these)"
            if summary.present[table]
            else ""
        )
        unit = "videos" if table == "features" else "rows"
        lines.append(f"  {table}: {summary.read[table]:,} {unit} read, {summary.kept[table]:,} kept{present}")
    lines += [f"  rejected, {reason}: {count:,}" for reason, count in summary.rejected.most_common()]
    lines += [f"  note: {note}" for note in summary.notes]
    lines += [f"  NOT READ TO ITS END: {detail}" for detail in summary.damaged[:10]]
    return lines


def missing_lines(store: Store) -> list[str]:
    """What the store's corpus as a whole lacks, for people."""
    # Imported here: what a flow can reach is never freed when Python ends, and DuckDB would complain of leaks.
    from storage.catalogue import Catalogue

    with Catalogue(store) as catalogue:
        rows = catalogue.query(
            "SELECT what, count(*) AS n, min(item) AS example FROM missing GROUP BY what ORDER BY what"
        )
    return [f"missing: {row['what']}: {row['n']:,}, e.g. {row['example']}" for row in rows.to_pylist()]
