"""The files under the path that a user names, and the names by which data sets call their tasks."""

import os
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

from tasks.importers.text_files import clean

_METHOD = re.compile(r"(?<=[^A-Z\d\s])(\d{1,2})$")


class Files:
    """The files under a folder, or the one file named. Links are followed; hidden files are left alone.

    `problems` are the folders that cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        if not self.path.exists():
            raise ValueError(f"there is nothing at {path}: name a file or a folder")
        self.problems: list[OSError] = []
        self._files = sorted(self._walk()) if self.path.is_dir() else [self.path]

    def _walk(self) -> Iterator[Path]:
        known: set[str] = set()
        for folder, folders, names in os.walk(self.path, followlinks=True, onerror=self.problems.append):
            real = os.path.realpath(folder)
            if real in known:  # a link to a folder above
                folders.clear()
                continue
            known.add(real)
            folders[:] = [name for name in folders if not name.startswith(".")]
            for name in (*folders, *names):
                path = Path(folder, name)
                if not name.startswith(".") and not (path.is_fifo() or path.is_socket() or path.is_char_device()):
                    yield path

    def named(self, pattern: str) -> list[Path]:
        """The files, or folders in place of files, whose names match a pattern; a `/` in it stands for a folder."""
        if "/" in pattern:
            return [file for file in self._files if fnmatch("/".join(file.parts[-2:]), pattern)]
        return [file for file in self._files if fnmatch(file.name, pattern)]

    def ending(self, *endings: str) -> list[Path]:
        """The files, or folders in place of files, whose names end so, in small or capital letters."""
        return [file for file in self._files if file.name.lower().endswith(endings)]


def article_id(source: str, own_id: str) -> str:
    """An article's id: its source and the source's own id. So no two sources' articles are ever taken for one."""
    return f"{source}/{own_id}"


def split_title(text: str) -> tuple[str, str | None]:
    """A title without `How to`, and its method number.

    wikiHow's dumps write the number right behind the last letter: `How to Grill Bacon2`. Behind a capital letter
    (`CS6`) or a space (`Windows 7`) it belongs to the title.
    """
    title = re.sub(r"^how to\s+", "", clean(text), flags=re.IGNORECASE)
    found = _METHOD.search(title)
    return (title[: found.start()], found[1]) if found else (title, None)
