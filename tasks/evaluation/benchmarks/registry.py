"""The list of benchmarks: a new one is one module and one line here (see tasks/evaluation/README.md).

The list is read when it is needed, never copied at import: commands, tables, pages and SQL views follow it.
"""

from tasks.evaluation.benchmarks.benchmark import Benchmark, Protocol, WholeArticles
from tasks.evaluation.benchmarks.crosstask import CROSSTASK
from tasks.evaluation.benchmarks.crosstask_articles import CROSSTASK_ARTICLES
from tasks.evaluation.benchmarks.htm_align import HTM_ALIGN
from tasks.evaluation.benchmarks.htstep import HTSTEP

BENCHMARKS: list[Benchmark] = [
    HTSTEP,
    HTM_ALIGN,
    CROSSTASK,
    CROSSTASK_ARTICLES,
]


def find_benchmark(name: str) -> Benchmark:
    """Return a benchmark by name. Raise ValueError, with all names, if there is none."""
    benchmarks = {benchmark.name: benchmark for benchmark in BENCHMARKS}
    if name not in benchmarks:
        raise ValueError(f"there is no benchmark {name!r}: choose one of {', '.join(benchmarks)}")
    return benchmarks[name]


def find_protocol(name: str) -> tuple[Benchmark, Protocol]:
    """Return a protocol by name, and its benchmark. Raise ValueError, with all names, if there is none."""
    protocols = {protocol.name: (benchmark, protocol) for benchmark in BENCHMARKS for protocol in benchmark.protocols}
    if name not in protocols:
        raise ValueError(f"there is no protocol {name!r}: choose one of {', '.join(protocols)}")
    return protocols[name]


def protocols_with_files() -> list[Protocol]:
    """Return the protocols that `vina score` offers."""
    return [protocol for benchmark in BENCHMARKS for protocol in benchmark.protocols if protocol.takes_files]


def result_columns(summary_only: bool = False) -> dict[str, dict[tuple[str, str], str]]:
    """Return the columns of `vina results`: by group, then by protocol and metric, with their titles."""
    columns: dict[str, dict[tuple[str, str], str]] = {}
    for part in (part for benchmark in BENCHMARKS for part in benchmark.results):
        if part.in_summary or not summary_only:
            columns.setdefault(part.group, {}).update(part.titles)
    return columns


def benchmark_of_whole_articles() -> tuple[Benchmark, WholeArticles]:
    """Return the benchmark whose annotations tell which steps of an article are not shown: the first that has them."""
    return next((each, each.whole_articles) for each in BENCHMARKS if each.whole_articles)
