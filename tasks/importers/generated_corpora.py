"""Corpora that are generated when they are imported, by the prefix of their address: `demo:default,num_videos=200`.

To add one: declare a `GeneratedCorpus` in its own file, and name it in GENERATED. Modules are imported when their
prefix is used, so that the importers depend on no generator.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from storage import Store

GENERATED = {"demo": "tasks.demo_world.corpus:DEMO_CORPUS"}
"""Generators by the prefix of the address: the module and the name of its declaration."""
CONTACT_SHEET = "demo/contact_sheet.png"
"""Object of the store with a picture of the generated videos; the report shows it."""


@dataclass(frozen=True)
class GeneratedCorpus:
    """A generator of corpus folders."""

    refusal: Callable[[Store, str], str]
    """(store, address) -> why the corpus must not be imported into the store, or an empty text."""
    write: Callable[[Store, str, Path, bool], str]
    """(store, address, new folder, with videos) -> a line that says what the corpus is. It writes the folder, and
    records in the store which corpus it holds. Without videos there are no features and no video files."""


def is_generated(address: str) -> bool:
    """Return whether a corpus is generated, rather than a folder."""
    prefix, colon, _ = address.partition(":")
    return bool(colon) and prefix in GENERATED


def refusal(store: Store, address: str) -> str:
    """Return why a generated corpus must not be imported; an empty text if it may be."""
    return _generator(address).refusal(store, address)


def write(store: Store, address: str, folder: Path, with_videos: bool = True) -> str:
    """Write a generated corpus into a new folder (without videos: only texts, annotations); say what it is."""
    return _generator(address).write(store, address, folder, with_videos)


def _generator(address: str) -> GeneratedCorpus:
    module, _, name = GENERATED[address.partition(":")[0]].partition(":")
    generator: GeneratedCorpus = getattr(import_module(module), name)
    return generator
