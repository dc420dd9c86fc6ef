"""A demo world as a corpus: `demo:default`, or `demo:short,num_videos=200,seed=1` with other values for some knobs.

`demo:htstep,scripts=FOLDER` has the timelines of a real data set.

A store holds either one demo world or real data: otherwise models would be trained on a mixture.
"""

import logging
from pathlib import Path
from typing import NamedTuple

from storage import MissingFileError, Store
from tasks.demo_world.files import write_world
from tasks.demo_world.knobs import ABOUT, choose_knobs
from tasks.demo_world.script import World
from tasks.importers.generated_corpora import CONTACT_SHEET, GeneratedCorpus

LOG = logging.getLogger("vina.import")
PREFIX = "demo:"
ADDRESS_KEY = "demo/corpus.txt"
"""Object of the store that holds the address of its demo world."""


class _Address(NamedTuple):
    """The parts of an address."""

    preset: str
    seed: int
    scripts: str
    """Folder of a real data set; empty: none."""
    changes: dict[str, str]
    """Knobs that differ from the preset's."""


def _parsed(corpus: str) -> _Address:
    preset, *assignments = corpus.removeprefix(PREFIX).split(",")
    if wrong := [each for each in assignments if "=" not in each]:
        raise ValueError(f"corpus {corpus!r}: {wrong[0]!r} is not KNOB=VALUE")
    changes = dict(each.split("=", 1) for each in assignments)
    seed, scripts = changes.pop("seed", "0"), changes.pop("scripts", "")
    if not seed.isdigit():
        raise ValueError(f"corpus {corpus!r}: the seed {seed!r} is not a whole number")
    return _Address(preset, int(seed), scripts, changes)


def world_of(corpus: str) -> World:
    """Return the world of an address. Raise ValueError if the address is wrong."""
    address = _parsed(corpus)
    knobs = choose_knobs(address.preset, address.changes)
    if not address.scripts:
        return World(knobs, address.seed)
    from tasks.demo_world.real_scripts import ScriptedWorld, read_scripts

    return ScriptedWorld(knobs, address.seed, read_scripts(address.scripts))


def seed_in(store: Store) -> int:
    """Return the seed of the demo world in a store; 0 if it holds none."""
    try:
        return _parsed(store.objects.get(ADDRESS_KEY).decode()).seed
    except MissingFileError:
        return 0


def refusal(store: Store, corpus: str) -> str:
    """Return why a world must not be imported into a store; an empty text if it may be."""
    try:
        stored_corpus = store.objects.get(ADDRESS_KEY).decode()
    except MissingFileError:
        if store.table("videos").snapshot().num_rows:
            return f"the store has other data, and {corpus} must not be mixed with it (use an empty store for a demo)"
        return ""
    if stored_corpus != corpus:
        raise ValueError(f"the store at {store.uri} holds {stored_corpus}, not {corpus}: use another store")
    return ""


def write(store: Store, corpus: str, folder: Path, with_videos: bool) -> str:
    """Write the world's files into a folder, and its address and contact sheet into the store; say what it is."""
    world = world_of(corpus)
    address = _parsed(corpus)
    shape = f"the timelines of {address.scripts}" if address.scripts else ABOUT[address.preset]
    about = f"{corpus}: {len(world):,} generated how-to videos; {shape}"
    LOG.info(about)
    store.objects.put(ADDRESS_KEY, corpus.encode())
    write_world(world, folder, with_videos=with_videos)
    if (folder / "contact_sheet.png").is_file():
        store.objects.upload(CONTACT_SHEET, folder / "contact_sheet.png")
    return about


DEMO_CORPUS = GeneratedCorpus(refusal, write)
