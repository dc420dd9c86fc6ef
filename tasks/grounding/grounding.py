"""Ground an article in one video: find the model, the video's features and narrations, and the article."""

from dataclasses import dataclass
from pathlib import Path

from storage import Store
from tasks.grounding.articles import Article, propose
from tasks.grounding.video_input import VideoInput, read_video
from tasks.pipeline.device import checked_device
from tasks.training.model_files import find_model, read_model
from vina_model.grounder import Grounder, Grounding


@dataclass(frozen=True)
class GroundingRequest:
    """One video, and how to ground an article in it."""

    video: str
    """A file, or the id of an imported video."""
    article: Article | None = None
    """The steps to look for; without an article the narrations vote for one of the store."""
    narrations: Path | None = None
    """A file of narrations; without one the imported narrations are used."""
    checkpoint: str | None = None
    """A file, the id of a run, or the id of a model; without one the newest model of the store is used."""
    weights: str | None = None
    """Weights of the network that makes features."""
    device: str | None = None


@dataclass(frozen=True)
class Grounded:
    """The result of a request, with the model, the video and the article that it used."""

    model: Grounder
    video_input: VideoInput
    article: Article
    result: Grounding


def ground(request: GroundingRequest, store: Store | None) -> Grounded:
    """Ground an article in a video. Raise ValueError if something is missing."""
    device = checked_device(request.device)
    model = load_model(request.checkpoint, store, device)
    video_input = read_video(request.video, model, store, request.narrations, request.weights, device)
    texts = [sentence.text for sentence in video_input.narrations]
    article = request.article
    if article is None:
        if store is None:
            raise ValueError("without a store no article can be proposed: give --article FILE or --steps")
        article = propose(store, None if request.narrations else video_input.video_id, texts)
    return Grounded(model, video_input, article, model.ground(video_input.features_TV, article.steps, texts))


def load_model(checkpoint: str | None, store: Store | None, device: str) -> Grounder:
    """Return the model of a file or of a run of the store, or else the newest model of the store."""
    if checkpoint is not None and (Path(checkpoint).exists() or Path(checkpoint).suffix in (".pt", ".pth")):
        return Grounder.from_checkpoint(checkpoint, device)
    if store is None:
        missing = f"no file {checkpoint}" if checkpoint else "no checkpoint"
        raise ValueError(f"there is {missing}, and no store to take a model from: give --checkpoint FILE, or --store")
    return read_model(store, find_model(store, checkpoint)["model_id"], device)
