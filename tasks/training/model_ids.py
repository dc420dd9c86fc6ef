"""The ids of the models of a curriculum: hashes of their settings and of the data they are trained on.

Equal settings on equal data are the same model, so a rerun continues it, and other settings never overwrite it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from storage import fingerprint_of
from storage.fingerprint import file_hash
from tasks.training.corpus import Corpus
from tasks.training.settings import TrainingSettings

CODE_VERSION = "3"
NOT_FINGERPRINTED = ("device", "checkpoint_minutes", "accumulate")
"""Settings that do not change the trained weights."""
OF_STUDENTS = (
    "selection", "narrations", "steps", "step_positions", "separate_text_mlps", "epochs", "burn_in_epochs",
    "refresh_epochs", "gamma", "keep_share", "confidence", "zeta", "label_matrix", "alignment_share", "tan",
)  # fmt: skip
"""Settings that have no effect on TAN*."""


@dataclass(frozen=True)
class ModelIds:
    """The ids of TAN* and of the student, and the settings behind each."""

    tan: str
    student: str
    tan_settings: Mapping[str, Any]
    student_settings: Mapping[str, Any]

    def settings_of(self, model_id: str) -> Mapping[str, Any]:
        """Return the settings behind one of the two ids."""
        return {self.tan: self.tan_settings, self.student: self.student_settings}[model_id]


def model_ids(settings: TrainingSettings, corpus: Corpus) -> ModelIds:
    """Return the ids of the models that these settings train on a corpus."""
    student_settings = fingerprinted_settings(settings)
    tan_settings = {name: value for name, value in student_settings.items() if name not in OF_STUDENTS}
    words = corpus.words_version if settings.words == "corpus" else file_hash(settings.words)
    tan_inputs = {"narrated": corpus.narrated_version, "words": words}
    student_inputs = {"corpus": corpus.version, "words": words, "tan": file_hash(settings.tan)}
    return ModelIds(
        tan=f"tan@{fingerprint_of(tan_settings, tan_inputs, CODE_VERSION)[:8]}",
        student=f"vina@{fingerprint_of(student_settings, student_inputs, CODE_VERSION)[:8]}",
        tan_settings=tan_settings,
        student_settings=student_settings,
    )


def settings_hash(settings: TrainingSettings) -> str:
    """Return a hash of the settings that change the trained weights, independent of the data."""
    return fingerprint_of(fingerprinted_settings(settings), {}, "")[:8]


def fingerprinted_settings(settings: TrainingSettings) -> dict[str, Any]:
    """Return the settings that change the trained weights."""
    return {name: value for name, value in settings.model_dump().items() if name not in NOT_FINGERPRINTED}
