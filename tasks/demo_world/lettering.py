"""Text that fits into a given width, in Pillow's default font."""

from PIL import ImageFont


def wrapped(text: str, width: int, most_lines: int, size: int) -> list[str]:
    """At most `most_lines` lines no wider than `width` pixels; a line that lacks something ends in dots."""
    font = ImageFont.load_default(size=size)

    def cut(line: str, lost: bool) -> str:
        while line and font.getlength(line + "..." * lost) > width:
            line, lost = line[:-1], True
        return line + "..." * lost

    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if font.getlength(longer) <= width or not lines[-1]:
            lines[-1] = longer
        else:
            lines.append(word)
    *others, last = lines[:most_lines]
    return [*(cut(line, False) for line in others), cut(last, len(lines) > most_lines)]
