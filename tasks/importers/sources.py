"""The sources that can be imported, by name."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from storage import Store
from storage.catalogue import Catalogue
from tasks.importers import (
    crosstask,
    features,
    howto100m,
    htm_align,
    htstep,
    texts,
    videos,
    wikihow,
    youwikihow,
)
from tasks.importers.files import Files
from tasks.importers.import_session import ImportSession
from tasks.importers.summary import Summary


@dataclass(frozen=True)
class Options:
    """Options of an import."""

    backbone: str | None = None
    """features, texts: name of the network (default: name of the folder or file)."""
    upload: bool = False
    """videos: copy the files into the store."""


@dataclass(frozen=True)
class Source:
    """A kind of data that can be imported."""

    name: str
    read: Callable[[Files, ImportSession, Store, Options], None]
    expected: str
    """The files it reads, for messages."""


def _plain(read: Callable[[Files, ImportSession], None]) -> Callable[[Files, ImportSession, Store, Options], None]:
    return lambda files, session, store, options: read(files, session)


def _backbone(files: Files, options: Options) -> str:
    folder = files.path if files.path.is_dir() else files.path.parent
    return options.backbone or folder.name


def _read_features(files: Files, session: ImportSession, store: Store, options: Options) -> None:
    backbone = _backbone(files, options)
    stored = store.table("features").snapshot().where(backbone=backbone)
    features.import_features(files, session, backbone, stored.vector_width())


def _read_texts(files: Files, session: ImportSession, store: Store, options: Options) -> None:
    texts.import_texts(files, session, options.backbone)


def _read_videos(files: Files, session: ImportSession, store: Store, options: Options) -> None:
    videos.import_videos(files, session, store.objects.upload if options.upload else None)


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
        Source("texts", _read_texts, texts.EXPECTED),
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
    """Import the files at a path. Rows kept before an error stay in the store."""
    if name not in SOURCES:
        raise ValueError(f"there is no source {name!r}; the sources are {', '.join(SOURCES)}")
    options = options or Options()
    files = Files(path)
    backbone = _backbone(files, options) if name == "features" else ""
    with ImportSession(store, run_id, name, path, backbone, on_progress) as session:
        for problem in files.problems:
            session.reject(str(problem.filename), "folder cannot be read", str(problem), Path(problem.filename))
            session.summary.damaged.append(str(problem))
        SOURCES[name].read(files, session, store, options)
    if not session.summary.num_files and not files.problems:
        raise ValueError(f"nothing to import at {path}: {name} knows {SOURCES[name].expected}")
    return session.summary


def forget_source(store: Store, name: str, backbone: str | None = None) -> dict[str, int]:
    """Retire what a source has imported, so that it can be imported again; return the rows retired, by table.

    Older versions of the tables keep them until `vina gc`.
    """
    if name in ("features", "texts") and not backbone:
        raise ValueError(f"name the {name} to forget with --backbone")
    if name == "features":
        partitions = {
            "features": [{"backbone": str(backbone)}, {"backbone": f"{backbone}-joint"}]
        }  # projected from these
    elif name == "texts":
        shards = store.table("sentence_embeddings").snapshot().shards
        encoders = {str(shard.constants["encoder"]) for shard in shards}
        named_encoders = [encoder for encoder in sorted(encoders) if encoder.partition("@")[0] == backbone]
        partitions = {"sentence_embeddings": [{"encoder": encoder} for encoder in named_encoders]}
    else:
        origins = [name, youwikihow.BENCHMARK] if name == "youwikihow" else [name]
        partitions = {
            table: [{"source": origin} for origin in origins] for table in ("videos", "narrations", "articles", "steps")
        }
        partitions["annotations"] = [{"benchmark": origin} for origin in origins]
    retired_rows: dict[str, int] = {}
    for table, table_partitions in partitions.items():
        for partition in table_partitions:
            stored = store.table(table).snapshot().where(**partition)
            if stored.shards:
                store.table(table).retire(partition)
                retired_rows[table] = retired_rows.get(table, 0) + stored.num_rows
    if name in ("features", "videos"):  # a file that could not be decoded may be replaced
        store.table("rejects").retire({"stage": "features"}, prefix=f"{backbone}/" if backbone else "")
    return retired_rows


def missing_lines(store: Store) -> list[str]:
    """Return lines that list what the corpus of the store lacks."""
    with Catalogue(store) as catalogue:
        rows = catalogue.query(
            "SELECT what, count(*) AS n, min(item) AS example FROM missing GROUP BY what ORDER BY what"
        )
    return [f"missing: {row['what']}: {row['n']:,}, e.g. {row['example']}" for row in rows.to_pylist()]
