"""From a video and a question to an answer: who is asked, what is looked at, what is looked for."""

from dataclasses import dataclass
from pathlib import Path

from storage import Store
from tasks.grounding.articles import Article, article_in, article_of, propose, read_article
from tasks.grounding.video_input import VideoInput, look_at
from tasks.pipeline.device import checked_device
from tasks.training.model_files import find_model, read_model
from vina_model.grounder import Grounder, Grounding


@dataclass(frozen=True)
class Question:
    """What may be asked. At most one of `article`, `task` and `steps`; without any the vote proposes an article."""

    video: str
    article: Path | None = None
    task: str | None = None
    steps: tuple[str, ...] = ()
    narrations: Path | None = None
    checkpoint: str | None = None
    """A file, a run's id, or a training's name; the newest run's without."""
    weights: str | None = None
    """Of the network that makes features."""
    device: str | None = None


@dataclass(frozen=True)
class Grounded:
    """A video, an article, and what a model says of the two."""

    model: Grounder
    video_input: VideoInput
    article: Article
    found: Grounding


def ground(question: Question, store: Store | None) -> Grounded:
    """Answer a question; a ValueError says what it lacks. What is quick to refuse is refused first."""
    article = _named_article(question, store)
    model = load_model(question.checkpoint, store, checked_device(question.device))
    video_input = look_at(
        question.video, model, store, question.narrations, question.weights, checked_device(question.device)
    )
    texts = [sentence.text for sentence in video_input.narrations]
    if article is None:
        if store is None:
            raise ValueError("without a store nobody can propose an article: name --article FILE or --steps")
        article = propose(store, None if question.narrations else video_input.video_id, texts)
    return Grounded(model, video_input, article, model.ground(video_input.features_TV, article.steps, texts))


def _named_article(question: Question, store: Store | None) -> Article | None:
    if question.article:
        return read_article(question.article)
    if question.steps:
        return article_of(question.steps)
    if question.task and store is None:
        raise ValueError("--task names an article of a store, and there is none (--store)")
    return article_in(store, question.task) if question.task and store is not None else None


def load_model(checkpoint: str | None, store: Store | None, device: str) -> Grounder:
    """A model by its file, or by a run of the store; the newest run's without."""
    if checkpoint is not None and (Path(checkpoint).exists() or Path(checkpoint).suffix in (".pt", ".pth")):
        return Grounder.from_checkpoint(checkpoint, device)
    if store is None:
        said = f"no file {checkpoint}" if checkpoint else "no checkpoint"
        raise ValueError(f"there is {said}, and no store to take a model from: name --checkpoint FILE, or --store")
    return read_model(store, find_model(store, checkpoint)["model_id"], device)
