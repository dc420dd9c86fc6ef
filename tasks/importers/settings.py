"""Settings of the stage `import`."""

from typing import ClassVar

from tasks.pipeline.settings import Settings


class ImportSettings(Settings):
    """What the stage imports."""

    group: ClassVar[str] = "import"
    presets: ClassVar = {"demo": {"corpus": "demo:default"}}

    corpus: str | None = None
    """Corpus folder, with one folder per source; or a demo world such as demo:default,num_videos=200. None: import
    nothing."""
