"""The demo world: a small world of how-to articles and videos whose truth is known, in the real data sets' formats.

`knobs.py` says how hard it is, `lexicon.py` what its people talk about, `articles.py` and `script.py` what is written,
shown and said, `features.py` and `pixels.py` how that looks to a network, `files.py` writes it all down.
"""
