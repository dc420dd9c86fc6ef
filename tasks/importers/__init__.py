"""The stage `import`: real data sets, or any part of them, into the tables. One file a source; see README.md."""
