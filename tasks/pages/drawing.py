"""Pictures inside a page: heat maps as PNG, one pixel per cell; plots as SVG in the text colour of the page."""

import base64
import io
import re
from collections.abc import Callable
from typing import Any

import matplotlib

matplotlib.use("Agg")

import numpy as np
import numpy.typing as npt
from cycler import cycler
from markupsafe import Markup, escape
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

INK = "#010203"
"""Stands for the text colour of the page, light or dark."""
COLOURS = ("#3b82d0", "#d9822b", "#2a9d6f", "#c2509b", "#8a6fd1", "#a08a1e")
"""Colours that are visible on white and on black."""
_STYLE: Any = {
    "svg.fonttype": "none", "text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": INK, "xtick.color": INK,
    "ytick.color": INK, "font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False,
    "axes.prop_cycle": cycler(color=COLOURS), "figure.constrained_layout.use": True,
}  # fmt: skip


def heat_map(matrix: npt.NDArray[np.floating]) -> str:
    """Return a matrix as a picture in a data URL: dark is low, bright is high."""
    low, high = float(matrix.min()), float(matrix.max())
    shares = (matrix - low) / (high - low) if high > low else np.zeros_like(matrix)
    colours = colormaps["viridis"](shares, bytes=True)[..., :3]
    sink = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(colours)).save(sink, "PNG", optimize=True)
    return as_data(sink.getvalue(), "image/png")


def as_data(content: bytes, kind: str) -> str:
    """Return bytes as a data URL."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def plot(draw: Callable[[Axes], None], description: str, width: float = 7.5, height: float = 3.2) -> Markup:
    """Return a plot as SVG; `description` is for screen readers."""
    sink = io.StringIO()
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(width, height))
        draw(figure.add_subplot())
        figure.savefig(sink, format="svg", transparent=True, metadata={"Date": None})
    svg = re.sub(r"^.*?(?=<svg)", "", sink.getvalue(), flags=re.DOTALL)
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL).replace(INK, "currentColor")
    return Markup(svg.replace("<svg ", f'<svg role="img" aria-label="{escape(description)}" ', 1))
