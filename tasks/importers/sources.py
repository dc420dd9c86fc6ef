"""The stage `import`: every source by its name, and a whole corpus folder at once.

A corpus folder has a sub-folder for each source it brings (`howto100m/`, `wikihow/`, ...); under `features/` there
is one for each backbone.
"""

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from storage import Store
from storage.catalogue import Catalogue
from tasks.features.recipe import AS_IMPORTED
from tasks.importers import (
    crosstask,
    features,
    generated_corpora,
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
from tasks.pipeline.job import Job
from tasks.pipeline.parts import RunParts, run_here
from tasks.pipeline.stage import Dependencies, Stage, versions

CODE_VERSION = "1"
TABLES = ("videos", "narrations", "articles", "steps", "annotations")


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
        raise ValueError(f"nothing to import at {path}: {name} knows {SOURCES[name].expected}")
    return session.summary


def forget_source(store: Store, name: str, backbone: str | None = None) -> dict[str, int]:
    """Take out what a source has brought, so that it can be imported anew; returns the rows taken out, by table.

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


def import_corpus(job: Job, run_parts: RunParts = run_here) -> str:
    """Import every source that the job's corpus folder has, or generate one."""
    if job.corpus is None:
        return "no corpus folder is given: the store keeps what it has"
    store = Store(job.store)
    if not generated_corpora.is_generated(job.corpus):
        return _import_folder(store, job.run_id, Path(job.corpus), Options())
    if refusal := generated_corpora.refusal(store, job.corpus):
        return refusal
    with TemporaryDirectory() as folder:
        corpus = Path(folder) / "corpus"
        generated_corpora.write(store, job.corpus, corpus)
        return _import_folder(store, job.run_id, corpus, Options(upload=True))


def _import_folder(store: Store, run_id: str, corpus: Path, options: Options) -> str:
    places = [(name, corpus / name) for name in SOURCES if name != "features"]
    places += [("features", folder) for folder in sorted((corpus / "features").glob("*")) if folder.is_dir()]
    found = [(name, place) for name, place in places if place.is_dir()]
    if not found:
        raise ValueError(
            f"{corpus} has none of the folders {', '.join(SOURCES)}: `vina demo {corpus}` makes an example"
        )
    lines = [""]
    for name, place in found:
        if any(place.rglob("*")):
            lines += import_source(store, run_id, name, place, options).lines()
        else:
            lines.append(f"{place} is empty")
    if any(path.is_file() for path in (corpus / "features").glob("*")):
        lines.append(
            f"{corpus / 'features'} has files of its own: not imported; put them in a folder named by their network"
        )
    return "\n".join([*lines, *missing_lines(store)])


def missing_lines(store: Store) -> list[str]:
    """What the store's corpus as a whole lacks, for people."""
    with Catalogue(store) as catalogue:
        rows = catalogue.query(
            "SELECT what, count(*) AS n, min(item) AS example FROM missing GROUP BY what ORDER BY what"
        )
    return [f"missing: {row['what']}: {row['n']:,}, e.g. {row['example']}" for row in rows.to_pylist()]


def dependencies(job: Job) -> Dependencies:
    """What was imported: the corpus folder as it is, by the names, sizes and times of its files."""
    store = job.open_store()
    corpus = job.corpus
    inputs = {"corpus": _listing(Path(corpus))} if corpus and not generated_corpora.is_generated(corpus) else {}
    brought = store.table("features").snapshot().where(layer=AS_IMPORTED).content_version
    return Dependencies({"corpus": corpus}, inputs, versions(store, *TABLES) | {"imported features": brought})


def _listing(corpus: Path) -> str:
    digest = hashlib.sha256()
    for folder, _, names in sorted(os.walk(corpus, followlinks=True)):
        for name in sorted(names):
            path = os.path.join(folder, name)  # noqa: PTH118  # hundreds of thousands of files
            found = os.stat(path) if os.path.exists(path) else None  # noqa: PTH110, PTH116
            digest.update(f"{path}\0{found.st_size if found else 0}\0{found.st_mtime_ns if found else 0}\n".encode())
    return digest.hexdigest()[:32]


def reset(job: Job) -> None:
    """Nothing is taken out, for others may have brought it: the corpus is read again. `vina forget` takes out."""


IMPORT = Stage("import", import_corpus, dependencies, reset, CODE_VERSION)
