"""`vina report` and `vina explore`: a run as one HTML file, and the store in a browser."""

import argparse
from pathlib import Path

from flows.cli.commands.shared import Add, existing_store, whole_number

PORT = 8420


def add_commands(add: Add) -> None:
    """Declare the commands."""
    report = add(
        "report",
        _report,
        "write the report of a run: one HTML file that needs nothing but a browser",
        "vina report --output report.html",
    )
    report.add_argument("run", nargs="?", metavar="RUN", help="a run's id (default: the newest complete run)")
    report.add_argument("--output", type=Path, metavar="FILE", help="default: reports/RUN.html in the store")

    explore = add(
        "explore",
        _explore,
        "browse the store on a local web page: runs, videos, matrices and SQL (Ctrl-C stops it)",
        "vina explore --port 8420",
    )
    explore.add_argument("--port", type=whole_number, default=PORT, metavar="N", help=f"default: {PORT}")
    explore.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="address to listen on (default: loopback only)",
    )
    explore.add_argument(
        "--videos",
        action="append",
        default=[],
        type=Path,
        metavar="FOLDER",
        help="also serve video files of this folder, not only those in the store and in imported folders",
    )


def _report(options: argparse.Namespace) -> int:
    from tasks.grounding.files import write_text  # loads torch
    from tasks.pages.report_page import newest_run, report_page
    from tasks.pipeline.run_record import job_of_run
    from tasks.report.stage import report_key

    store = existing_store(options.store)
    if options.output is not None and not options.output.parent.is_dir():
        raise ValueError(f"--output {options.output}: there is no folder {options.output.parent}")
    run_id = options.run or newest_run(store)
    page = report_page(store, job_of_run(store, run_id))
    if options.output is None:
        print(store.objects.put(report_key(run_id), page.encode()))
    else:
        write_text(options.output, page)
        print(options.output)
    return 0


def _explore(options: argparse.Namespace) -> int:
    from flows.web.explorer import serve  # loads torch

    return serve(existing_store(options.store), options.host, options.port, options.videos)
