"""The page of one video: one HTML file."""

from storage import Store
from tasks.grounding.grounding import Grounded
from tasks.pages.rendering import render
from tasks.pages.video_view import view_of, with_video_file


def video_page(grounded: Grounded, store: Store | None) -> str:
    """Return the page as HTML."""
    view = with_video_file(view_of(grounded, store), grounded.video_input.video_file)
    return render("video.html", view=view)
