"""The sources that can be imported, by name."""

from collections.abc import Callable, Mapping, Sequence
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

TABLES_BY_SOURCE = ("videos", "narrations", "articles", "steps")


class NothingToImport(ValueError):
    """No file of the source is at the path."""


@dataclass(frozen=True)
class Options:
    """Options of an import."""

    backbone: str | None = None
    """features, texts: name of the network (default: name of the folder or file)."""
    upload: bool = False
    """videos: copy the files into the store."""


Partitions = Mapping[str, Sequence[Mapping[str, str]]]
"""Partitions by the name of their table."""


@dataclass(frozen=True)
class Source:
    """A kind of data that can be imported."""

    name: str
    read: Callable[[Files, ImportSession, Store, Options], None]
    expected: str
    """The files it reads, for messages."""
    annotates_steps: bool = False
    """Whether it brings annotated steps of articles."""
    other_names: tuple[str, ...] = ()
    """Other sources and benchmarks that its rows belong to."""
    network_partitions: Callable[[Store, str], Partitions] | None = None
    """(store, network) -> partitions of the network's vectors, for a source of vectors."""
    has_folder_per_network: bool = False
    """Whether its files are in one folder per network, named after it."""
    is_decoded: bool = False
    """Whether rejects of the stage `features` are forgotten with it."""

    def partitions(self, store: Store, network: str | None) -> Partitions:
        """Return the partitions that it writes; for a source of vectors, those of one network."""
        if self.network_partitions:
            if not network:
                raise ValueError(f"name the {self.name} to forget with --backbone")
            return self.network_partitions(store, network)
        names = (self.name, *self.other_names)
        tables = {table: [{"source": name} for name in names] for table in TABLES_BY_SOURCE}
        return tables | {"annotations": [{"benchmark": name} for name in names]}


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


def _feature_partitions(store: Store, network: str) -> Partitions:
    """Return the features of a network, and those that were made of them."""
    from tasks.features.backbones import BACKBONES, backbone_of  # loads torch

    names = [network, *([backbone_of(network).joint_name] if network in BACKBONES else [])]
    return {"features": [{"backbone": name} for name in dict.fromkeys(names)]}


def _text_partitions(store: Store, network: str) -> Partitions:
    """Return the texts of a network, by whichever files."""
    shards = store.table("sentence_embeddings").snapshot().shards
    encoders = sorted({str(shard.constants["encoder"]) for shard in shards})
    return {"sentence_embeddings": [{"encoder": name} for name in encoders if name.partition("@")[0] == network]}


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
        Source(
            "youwikihow", _plain(youwikihow.import_youwikihow), youwikihow.EXPECTED, annotates_steps=True,
            other_names=(youwikihow.BENCHMARK,),
        ),
        Source(
            "features", _read_features, features.EXPECTED, network_partitions=_feature_partitions,
            has_folder_per_network=True, is_decoded=True,
        ),
        Source("texts", _read_texts, texts.EXPECTED, network_partitions=_text_partitions),
        Source("videos", _read_videos, videos.EXPECTED, is_decoded=True),
    )
}  # fmt: skip


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
    source, options = SOURCES[name], options or Options()
    files = Files(path)
    backbone = _backbone(files, options) if source.has_folder_per_network else ""
    with ImportSession(store, run_id, name, path, backbone, on_progress) as session:
        for problem in files.problems:
            session.reject(str(problem.filename), "folder cannot be read", str(problem), Path(problem.filename))
            session.summary.damaged.append(str(problem))
        source.read(files, session, store, options)
    if not session.summary.num_files and not files.problems:
        raise NothingToImport(f"nothing to import at {path}: {name} knows {source.expected}")
    return session.summary


def forget_source(store: Store, name: str, backbone: str | None = None) -> dict[str, int]:
    """Retire what a source has imported, so that it can be imported again; return the rows retired, by table.

    Older versions of the tables keep them until `vina gc`.
    """
    source = SOURCES[name]
    retired_rows: dict[str, int] = {}
    for table, partitions in source.partitions(store, backbone).items():
        for partition in partitions:
            stored = store.table(table).snapshot().where(**partition)
            if stored.shards:
                store.table(table).retire(partition)
                retired_rows[table] = retired_rows.get(table, 0) + stored.num_rows
    if source.is_decoded:  # a file that could not be decoded may be replaced
        store.table("rejects").retire({"stage": "features"}, prefix=f"{backbone}/" if backbone else "")
    return retired_rows


def missing_lines(store: Store) -> list[str]:
    """Return lines that list what the corpus of the store lacks."""
    with Catalogue(store) as catalogue:
        rows = catalogue.query(
            "SELECT what, count(*) AS n, min(item) AS example FROM missing GROUP BY what ORDER BY what"
        )
    return [f"missing: {row['what']}: {row['n']:,}, e.g. {row['example']}" for row in rows.to_pylist()]
