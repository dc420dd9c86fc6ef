"""The demo world: a small world of how-to articles and videos with known truth, in the formats of the real data sets.

`knobs.py` sets its size and difficulty; `lexicon.py`, `articles.py` and `script.py` make its texts and scripts;
`features.py` and `pixels.py` make features and videos from them; `files.py` writes the files. See README.md.
"""
