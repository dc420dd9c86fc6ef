"""Counts of one import: rows read, kept and already stored, by table; rejects by reason; notes; damaged files."""

from collections import Counter
from dataclasses import dataclass, field, fields
from typing import Any


@dataclass
class Summary:
    """Counts of one import. Features are counted in videos, not seconds."""

    source: str
    path: str
    num_files: int = 0
    """Number of files of the source."""
    read: Counter[str] = field(default_factory=Counter)
    """Valid and rejected rows, by table."""
    kept: Counter[str] = field(default_factory=Counter)
    """Rows that are new in the store, by table."""
    present: Counter[str] = field(default_factory=Counter)
    """Valid rows that the store already had, by table."""
    rejected: Counter[str] = field(default_factory=Counter)
    """Rejects, by reason."""
    notes: list[str] = field(default_factory=list)
    """Notes, e.g. on missing files and their consequences."""
    damaged: list[str] = field(default_factory=list)
    """Files that could not be read to their end."""
    rejects_shard: str = ""
    """Prefix of the names of its shards in `rejects`."""

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: dict(value) if isinstance(value, Counter) else value for name, value in values.items()}

    def lines(self) -> list[str]:
        """Return the summary as lines of text."""
        lines = [f"{self.source} from {self.path}"]
        for table in self.read | self.kept:
            unit = "videos" if table == "features" else "rows"
            present = f", {self.present[table]:,} were already stored" if self.present[table] else ""
            lines.append(f"  {table}: {self.read[table]:,} {unit} read, {self.kept[table]:,} kept{present}")
        lines += [f"  rejected, {reason}: {count:,}" for reason, count in self.rejected.most_common()]
        lines += [f"  note: {note}" for note in self.notes]
        lines += [f"  NOT READ TO ITS END: {detail}" for detail in self.damaged[:10]]
        if len(self.damaged) > 10:
            lines.append(f"  NOT READ TO THEIR END: {len(self.damaged) - 10:,} more files")
        return lines
