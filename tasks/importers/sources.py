"""The sources that can be imported, by name."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from storage import Store
from storage.catalogue import Catalogue
from tasks.importers import (
    coin,
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


class NothingToImport(ValueError):
    """No file of the source is at the path."""


@dataclass(frozen=True)
class Options:
    """What may be asked of an import."""

    backbone: str | None = None
    """features, texts: the network's name (default: the folder's, or the file's)."""
    upload: bool = False
    """videos: copy the files into the store."""


@dataclass(frozen=True)
class Source:
    """A kind of data that can be imported."""

    name: str
    read: Callable[[Files, ImportSession, Store, Options], None]
    expected: str
    """The files it knows."""
    annotates_steps: bool = False
    """Whether it brings annotated steps of articles."""


def _plain(read: Callable[[Files, ImportSession], None]) -> Callable[[Files, ImportSession, Store, Options], None]:
    return lambda files, session, store, options: read(files, session)


def _backbone(files: Files, options: Options) -> str:
    folder = files.path if files.path.is_dir() else files.path.parent
    return options.backbone or folder.name


def _read_features(files: Files, session: ImportSession, store: Store, options: Options) -> None:
    backbone = _backbone(files, options)
    known = store.table("features").snapshot().where(backbone=backbone)
    features.import_features(files, session, backbone, known.vector_width())


def _read_texts(files: Files, session: ImportSession, store: Store, options: Options) -> None:
    texts.import_texts(files, session, options.backbone)


def _read_videos(files: Files, session: ImportSession, store: Store, options: Options) -> None:
    videos.import_videos(files, session, store.objects.upload if options.upload else None)


SOURCES = {
    source.name: source
    for source in (
        Source("howto100m", _plain(howto100m.import_howto100m), howto100m.EXPECTED),
        Source("wikihow", _plain(wikihow.import_wikihow), wikihow.EXPECTED),
        Source("crosstask", _plain(crosstask.import_crosstask), crosstask.EXPECTED, annotates_steps=True),
        Source("htstep", _plain(htstep.import_htstep), htstep.EXPECTED, annotates_steps=True),
        Source("coin", _plain(coin.import_coin), coin.EXPECTED, annotates_steps=True),
        Source("htm-align", _plain(htm_align.import_htm_align), htm_align.EXPECTED),
        Source("youwikihow", _plain(youwikihow.import_youwikihow), youwikihow.EXPECTED, annotates_steps=True),
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
    """Import what there is at a path; what was kept is in the store even where an error follows."""
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
        raise NothingToImport(f"nothing to import at {path}: {name} knows {SOURCES[name].expected}")
    return session.summary


def forget_source(store: Store, name: str, backbone: str | None = None) -> dict[str, int]:
    """Retire what a source has imported, so that it can be imported again; return the rows retired, by table.

    Older versions of the tables keep them until `vina gc`.
    """
    if name in ("features", "texts") and not backbone:
        raise ValueError(f"name the {name} to forget with --backbone")
    if name == "features":
        places = {"features": [{"backbone": str(backbone)}, {"backbone": f"{backbone}-joint"}]}  # made of these
    elif name == "texts":
        shards = store.table("sentence_embeddings").snapshot().shards
        encoders = {str(shard.constants["encoder"]) for shard in shards}
        own = [encoder for encoder in sorted(encoders) if encoder.partition("@")[0] == backbone]
        places = {"sentence_embeddings": [{"encoder": encoder} for encoder in own]}
    else:
        origins = [name, youwikihow.BENCHMARK] if name == "youwikihow" else [name]
        places = {
            table: [{"source": origin} for origin in origins] for table in ("videos", "narrations", "articles", "steps")
        }
        places["annotations"] = [{"benchmark": origin} for origin in origins]
    taken: dict[str, int] = {}
    for table, partitions in places.items():
        for partition in partitions:
            known = store.table(table).snapshot().where(**partition)
            if known.shards:
                store.table(table).retire(partition)
                taken[table] = taken.get(table, 0) + known.num_rows
    if name in ("features", "videos"):  # what could not be decoded may be another file next time
        store.table("rejects").retire({"stage": "features"}, prefix=f"{backbone}/" if backbone else "")
    return taken


def missing_lines(store: Store) -> list[str]:
    """What the store's corpus as a whole lacks, for people."""
    with Catalogue(store) as catalogue:
        rows = catalogue.query(
            "SELECT what, count(*) AS n, min(item) AS example FROM missing GROUP BY what ORDER BY what"
        )
    return [f"missing: {row['what']}: {row['n']:,}, e.g. {row['example']}" for row in rows.to_pylist()]
