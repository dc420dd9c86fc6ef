"""The stage `import`: a whole corpus folder at once, or a demo world.

A corpus folder has a folder for each source (`howto100m/`, `wikihow/`, ...); under `features/` there is one for each
backbone.
"""

import hashlib
import os
from pathlib import Path
from tempfile import TemporaryDirectory

from storage import Store
from tasks.features.recipe import AS_IMPORTED
from tasks.importers import generated_corpora
from tasks.importers.settings import ImportSettings
from tasks.importers.sources import SOURCES, Options, import_source, missing_lines
from tasks.pipeline.artifacts import CORPUS, REJECTS
from tasks.pipeline.job import Job
from tasks.pipeline.parts import RunParts, run_here
from tasks.pipeline.stage import Dependencies, Stage, versions

CODE_VERSION = "1"
TABLES = ("videos", "narrations", "articles", "steps", "annotations")


def import_corpus(job: Job, run_parts: RunParts = run_here) -> str:
    """Import every source of the corpus folder, or a demo world; return a report."""
    address = job.settings_of(ImportSettings).corpus
    if address is None:
        return "no corpus folder is given: the store is unchanged"
    store = Store(job.store)
    if not generated_corpora.is_generated(address):
        return _import_folder(store, job.run_id, Path(address), Options())
    if refusal := generated_corpora.refusal(store, address):
        return refusal
    with TemporaryDirectory() as folder:
        corpus = Path(folder) / "corpus"
        about = generated_corpora.write(store, address, corpus)
        return about + _import_folder(store, job.run_id, corpus, Options(upload=True))


def _import_folder(store: Store, run_id: str, corpus: Path, options: Options) -> str:
    folders = [(name, corpus / name) for name, source in SOURCES.items() if not source.has_folder_per_network]
    parents = [corpus / name for name, source in SOURCES.items() if source.has_folder_per_network]
    folders += [(parent.name, folder) for parent in parents for folder in sorted(parent.glob("*"))]
    existing = [(name, folder) for name, folder in folders if folder.is_dir()]
    if not existing:
        raise ValueError(
            f"{corpus} has none of the folders {', '.join(SOURCES)}: `vina demo {corpus}` makes an example"
        )
    lines = [""]
    for name, folder in existing:
        if any(folder.rglob("*")):
            lines += import_source(store, run_id, name, folder, options).lines()
        else:
            lines.append(f"{folder} is empty")
    lines += [
        f"{parent} has files that are not in a backbone's folder: they were not imported"
        for parent in parents
        if any(path.is_file() for path in parent.glob("*"))
    ]
    return "\n".join([*lines, *missing_lines(store)])


def dependencies(job: Job) -> Dependencies:
    """Return what the import depends on: names, sizes and times of the files of the corpus folder."""
    store, corpus = job.open_store(), job.settings_of(ImportSettings).corpus
    inputs = {"corpus": _listing(Path(corpus))} if corpus and not generated_corpora.is_generated(corpus) else {}
    features = store.table("features").snapshot().where(layer=AS_IMPORTED).content_version
    return Dependencies({"corpus": corpus}, inputs, versions(store, *TABLES) | {"imported features": features})


def _listing(corpus: Path) -> str:
    digest = hashlib.sha256()
    for folder, _, names in sorted(os.walk(corpus, followlinks=True)):
        for name in sorted(names):
            path = os.path.join(folder, name)  # noqa: PTH118  # hundreds of thousands of files
            status = os.stat(path) if os.path.exists(path) else None  # noqa: PTH110, PTH116
            digest.update(
                f"{path}\0{status.st_size if status else 0}\0{status.st_mtime_ns if status else 0}\n".encode()
            )
    return digest.hexdigest()[:32]


IMPORT = Stage(
    "import", import_corpus, dependencies, CODE_VERSION, settings=(ImportSettings,),
    artifacts=CORPUS
    | REJECTS
    | {"missing": "SELECT what, count(*) AS items, min(item) AS example FROM missing GROUP BY what ORDER BY what"},
)  # fmt: skip
"""It has no reset: the corpus is read again, and `vina forget` retires what was imported."""
