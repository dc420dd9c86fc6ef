"""The data at an address as a store: a store itself, or what is imported from it into a temporary one.

Addresses: a store's folder or s3://bucket/prefix; a generated corpus (`demo:htstep,num_videos=600`); a corpus folder; a
folder or a file of a data set with annotated steps, which is told by the files it has. Features, embeddings and video
files are not imported.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from storage import Store
from storage.schemas import TABLES
from tasks.importers import generated_corpora
from tasks.importers.sources import SOURCES, NothingToImport, import_source
from tasks.importers.summary import Summary

NOT_IMPORTED = ("features", "texts", "videos")
RUN_ID = "temporary"


@contextmanager
def open_data(address: str, on_import: Callable[[Summary], None] = lambda summary: None) -> Iterator[Store]:
    """Yield a store with the data at an address; a temporary one is removed at the end."""
    if address.startswith("s3://"):
        store = Store(address)
        store.location.check()
        yield store
    elif not generated_corpora.is_generated(address) and is_store(Path(address)):
        yield Store(address)
    else:
        with TemporaryDirectory(prefix="vina-data-") as folder:
            store, path = Store(Path(folder) / "store"), Path(address)
            if generated_corpora.is_generated(address):
                path = Path(folder) / "corpus"
                generated_corpora.write(store, address, path, with_videos=False)
            _import(store, path, on_import)
            yield store


def is_store(path: Path) -> bool:
    """Return whether a folder has a table of a store."""
    return any((path / name / "_delta_log").is_dir() for name in TABLES)


def _import(store: Store, path: Path, on_import: Callable[[Summary], None]) -> None:
    if not path.exists():
        raise ValueError(f"there is nothing at {path}: name a store, a demo world or a folder of a data set")
    sub_folders = {name: path / name for name in SOURCES if name not in NOT_IMPORTED and (path / name).is_dir()}
    annotated = {name: path for name, source in SOURCES.items() if source.annotates_steps}
    summaries: list[Summary] = []
    for name, folder in (sub_folders or annotated).items():
        with suppress(NothingToImport):
            summaries.append(import_source(store, RUN_ID, name, folder))
    # A source may know a name, such as annotations.json, of another data set's file: then it keeps nothing.
    imported = [summary for summary in summaries if summary.kept]
    for summary in imported or summaries:
        if summary.damaged:
            raise ValueError(f"not read to its end: {summary.damaged[0]}")
        on_import(summary)
    if not imported:
        files = "; ".join(f"{name}: {SOURCES[name].expected}" for name in annotated)
        raise ValueError(f"{path} is no store, and nothing in it is of a data set with annotated steps ({files})")
