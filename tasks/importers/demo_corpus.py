"""A demo world in the place of a corpus folder: `demo:default`, or `demo:easy,num_videos=200,seed=1` with knobs turned.

A store holds one demo world, and nothing else beside it: a demo among real data would be trained on.
"""

from pathlib import Path

from storage import MissingFileError, Store
from tasks.demo_world.files import write_world
from tasks.demo_world.knobs import choose_knobs
from tasks.demo_world.script import World

PREFIX = "demo:"
FINGERPRINT = "demo/corpus.txt"
CONTACT_SHEET = "demo/contact_sheet.png"


def is_demo(corpus: str) -> bool:
    """Whether a corpus is to be made up."""
    return corpus.startswith(PREFIX)


def world_of(corpus: str) -> World:
    """The world that the corpus names; a ValueError if it names none."""
    preset, *turned = corpus.removeprefix(PREFIX).split(",")
    if wrong := [each for each in turned if "=" not in each]:
        raise ValueError(f"corpus {corpus!r}: {wrong[0]!r} is not KNOB=VALUE")
    changes = dict(each.split("=", 1) for each in turned)
    seed = changes.pop("seed", "0")
    if not seed.isdigit():
        raise ValueError(f"corpus {corpus!r}: the seed {seed!r} is not a whole number")
    return World(choose_knobs(preset, changes), int(seed))


def seed_in(store: Store) -> int | None:
    """The seed of the world that the store holds, if it holds one."""
    try:
        return world_of(store.objects.get(FINGERPRINT).decode()).seed
    except MissingFileError:
        return None


def refusal(store: Store, corpus: str) -> str:
    """Why the world is not to be imported; nothing if it is."""
    try:
        known = store.objects.get(FINGERPRINT).decode()
    except MissingFileError:
        if store.table("videos").snapshot().num_rows:
            return f"the store has data of its own: {corpus} is not mixed with it (name an empty store for a demo)"
        return ""
    if known != corpus:
        raise ValueError(f"the store at {store.uri} holds {known}, not {corpus}: name another store")
    return ""


def write(store: Store, corpus: str, folder: Path) -> None:
    """The world's files; the store remembers which world it is, and what it looks like."""
    world = world_of(corpus)
    store.objects.put(FINGERPRINT, corpus.encode())
    write_world(world, folder)
    if (folder / "contact_sheet.png").is_file():
        store.objects.upload(CONTACT_SHEET, folder / "contact_sheet.png")
