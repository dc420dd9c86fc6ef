"""The files under a path; ids of articles, and method numbers in their titles."""

import os
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

from tasks.importers.text_files import clean

_METHOD = re.compile(r"(?<=[^A-Z\d\s])(\d{1,2})$")


class Files:
    """The files under a folder, or one file. Links are followed; hidden files are skipped.

    `problems` are the folders that cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        if not self.path.exists():
            raise ValueError(f"there is nothing at {path}: name a file or a folder")
        self.problems: list[OSError] = []
        self._files = sorted(self._walk()) if self.path.is_dir() else [self.path]

    def _walk(self) -> Iterator[Path]:
        visited: set[str] = set()
        for folder, folders, names in os.walk(self.path, followlinks=True, onerror=self.problems.append):
            real = os.path.realpath(folder)
            if real in visited:  # a link to a folder above
                folders.clear()
                continue
            visited.add(real)
            folders[:] = [name for name in folders if not name.startswith(".")]
            for name in (*folders, *names):
                path = Path(folder, name)
                if not name.startswith(".") and not (path.is_fifo() or path.is_socket() or path.is_char_device()):
                    yield path

    def named(self, pattern: str) -> list[Path]:
        """Return files (and folders) whose names match a pattern; a pattern with a `/` matches folder and name."""
        if "/" in pattern:
            return [file for file in self._files if fnmatch("/".join(file.parts[-2:]), pattern)]
        return [file for file in self._files if fnmatch(file.name, pattern)]

    def ending(self, *endings: str) -> list[Path]:
        """Return files (and folders) whose names have one of these endings, ignoring case."""
        return [file for file in self._files if file.name.lower().endswith(endings)]


def article_id(source: str, id_in_source: str) -> str:
    """Return the id of an article: its source and its id there, so that articles of two sources never share an id."""
    return f"{source}/{id_in_source}"


def split_title(text: str) -> tuple[str, str | None]:
    """Return a title without `How to`, and its method number.

    wikiHow's dumps write the number directly after the last letter: `How to Grill Bacon2`. After a capital letter
    (`CS6`) or a space (`Windows 7`) it belongs to the title.
    """
    title = re.sub(r"^how to\s+", "", clean(text), flags=re.IGNORECASE)
    match = _METHOD.search(title)
    return (title[: match.start()], match[1]) if match else (title, None)
