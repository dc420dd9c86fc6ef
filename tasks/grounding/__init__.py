"""One video, one article: features, alignment and detection on request, and what comes of it as files and a page."""
