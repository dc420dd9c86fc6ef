"""The demo world: a small world of how-to articles and videos whose truth is known, in the real data sets' formats.

`knobs.py` sets its size and difficulty; `lexicon.py`, `articles.py` and `script.py` make its texts and scripts;
`features.py` and `pixels.py` make features and videos of them; `files.py` writes the files. See README.md.
"""
