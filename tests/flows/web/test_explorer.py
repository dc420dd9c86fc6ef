"""`vina explore` as a process, in a real browser."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import httpx
import pyarrow as pa
import pytest
from fastapi.testclient import TestClient
from playwright.sync_api import Browser, expect

from flows.cli.main import main
from flows.web.explorer import is_local, make_app
from storage import Store
from storage.feature_reader import FeatureReader
from storage.vectors import feature_rows
from tasks.pipeline.job import Job
from tasks.pipeline.run_record import record_run
from tests.browser import NARROW, WIDE, findings, is_too_wide, opened, until
from tests.conftest import free_port, wait_for_port
from tests.trained_store import RUN, copy_of, video_files

EVIL = "<script>document.title = 'taken'</script>"
ODD_ID = "a/b?c=<i>&'d'"
PAGE_ID = "a page in the place of a video"
OUTSIDE_ID = "a file outside the store"
LINK_ID = "a link out of the store"


@pytest.fixture(scope="module")
def store(trained: Job, tmp_path_factory: pytest.TempPathFactory) -> Store:
    """The trained store, with an article and a video of odd names."""
    store = Store(copy_of(trained, tmp_path_factory.mktemp("explored")).store)
    provenance = {"fingerprint": "f", "run_id": RUN}
    (Path(store.uri) / "page.html").write_text("<script>alert(1)</script>")
    secret, link = Path(store.uri).parent / "secret.webm", Path(store.uri) / "link.webm"
    secret.write_text("secret")
    link.symlink_to(secret)
    rows: dict[str, tuple[dict[str, str], dict[str, object]]] = {
        "articles": ({"source": "odd"}, {"article_id": f"odd/{EVIL}", "title": EVIL}),
        "steps": ({"source": "odd"}, {"article_id": f"odd/{EVIL}", "row": 0, "step_id": "0", "headline": EVIL}),
        "videos": ({"source": "odd"}, {"video_id": ODD_ID}),
        "videos ": ({"source": "page"}, {"video_id": PAGE_ID, "uri": str(Path(store.uri) / "page.html")}),
        "videos  ": ({"source": "outside"}, {"video_id": OUTSIDE_ID, "uri": str(secret)}),
        "videos   ": ({"source": "link"}, {"video_id": LINK_ID, "uri": str(link)}),
        "pairs": ({"selection": "top1"}, {"video_id": ODD_ID, "article_id": f"odd/{EVIL}", "rank": 1}),
    }
    for name, (partition, row) in rows.items():
        table = store.table(name.strip())
        table.commit(pa.Table.from_pylist([row], schema=table.schema.files), partition, "odd", **provenance)  # type: ignore[arg-type]
    features = FeatureReader(store, "demo-concepts")
    constants = dict.fromkeys(store.table("features").schema.constants) | {"stride_s": 1.0, "layer": "as imported"}
    place = {"backbone": "demo-concepts"}
    with store.table("features").writer(place, "odd", constants=constants, **provenance) as writer:  # type: ignore[arg-type]
        writer.write(feature_rows(ODD_ID, features.read(next(iter(video_files(store))))))
    return store


@pytest.fixture(scope="module")
def site(store: Store, trained: Job) -> Iterator[str]:
    port = free_port()
    command = [sys.executable, "-m", "flows.cli", "explore", "--port", str(port), "--store", store.uri]
    command += ["--videos", trained.store]  # the copied store names the files of the first one
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        wait_for_port(port)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        assert process.wait(20) in (0, -15)
        assert process.stdout is not None and f"http://127.0.0.1:{port}/" in process.stdout.read()


def test_from_the_runs_to_a_report_and_to_a_video_that_plays(browser: Browser, site: str, store: Store) -> None:
    with opened(browser, site) as page:
        page.get_by_role("link", name=RUN, exact=True).click()
        expect(page.locator("h1")).to_have_text(f"VINA, run {RUN}")
        page.get_by_role("link", name="Videos", exact=True).first.click()
        video = next(iter(video_files(store)))
        page.get_by_label("id or title contains").fill(video[2:9])
        page.get_by_role("button", name="Search").click()
        page.get_by_role("link", name=video).click()
        until(page, "document.querySelector('video').readyState >= 1")
        step = page.locator("button.step").nth(1)
        step.click()
        until(page, f"Math.abs(document.querySelector('video').currentTime - {step.get_attribute('data-start')}) < 0.1")
        assert page.locator(".map img").count() == 4


def test_a_matrix_and_a_round_can_be_chosen(browser: Browser, site: str, store: Store) -> None:
    label = store.table("pseudo_labels").snapshot().read().to_pylist()[0]
    with opened(browser, f"{site}/video?id={quote(label['video_id'])}") as page:
        page.get_by_label("matrix").select_option("direct")
        page.get_by_label("matrices of").select_option("1")
        page.get_by_label("run").select_option(RUN)
        page.get_by_role("button", name="Show", exact=True).click()
        assert page.locator(".map img").count() == 1
        expect(page.locator("section.video")).to_contain_text("matrices of round 1")
        before = page.locator(".map img").get_attribute("src")
        page.get_by_label("matrices of").select_option("2")
        page.get_by_role("button", name="Show", exact=True).click()
        assert page.locator(".map img").get_attribute("src") != before


def test_the_sql_box_answers_and_refuses_to_write(browser: Browser, site: str, store: Store) -> None:
    runs = store.table("runs").snapshot().num_rows
    with opened(browser, f"{site}/sql") as page:
        box = page.get_by_role("textbox")
        box.fill("SELECT count(*) AS steps, '<b>bold</b>' AS text, [1, 2] AS list FROM steps WHERE source = 'wikihow'")
        page.get_by_role("button", name="Run", exact=True).click()
        cells = page.locator("tbody td").all_inner_texts()
        assert cells == [str(store.table("steps").snapshot().where(source="wikihow").num_rows), "<b>bold</b>", "[1, 2]"]
        for write in ("DELETE FROM runs", "COPY runs TO '/tmp/x.csv'", "SELECT * FROM read_csv('/etc/passwd')"):
            page.get_by_role("textbox").fill(write)
            page.get_by_role("button", name="Run", exact=True).click()
            expect(page.get_by_role("alert")).to_be_visible()
            assert page.locator("tbody").count() == 0
        page.get_by_role("textbox").fill("SELECT 1 AS a, 2 AS a FROM range(3000)")
        page.get_by_role("button", name="Run", exact=True).click()
        expect(page.get_by_role("status")).to_contain_text("1000 rows")
    assert store.table("runs").snapshot().num_rows == runs


def test_odd_names_are_shown_as_text(browser: Browser, site: str) -> None:
    with opened(browser, f"{site}/videos?search={quote('<script>')}") as page:
        page.get_by_role("link", name=ODD_ID).click()
        assert page.title() == EVIL
        assert page.locator("h1").inner_text() == EVIL == page.locator(".what").inner_text()


@pytest.mark.parametrize("path", ["/", "/videos", "/sql?query=FROM%20corpus", "/video?id=VIDEO", "/run?id=run-1"])
@pytest.mark.parametrize(("width", "dark"), [(WIDE, False), (NARROW, True)])
def test_everybody_can_read_it(browser: Browser, site: str, store: Store, path: str, width: int, dark: bool) -> None:
    address = site + path.replace("VIDEO", next(iter(video_files(store))))
    with opened(browser, address, width, dark) as page:
        assert findings(page) == [] and not is_too_wide(page)


def test_what_is_not_there_is_said(site: str) -> None:
    for path, message in (
        ("/video?id=nobody", "has no demo-concepts features"),
        ("/run?id=nobody", "there is no run"),
        ("/video-file?id=nobody", "no video with that id"),
        ("/video?id=" + quote(ODD_ID) + "&by=7", "no matrices of round"),
        ("/video-file?id=" + quote(PAGE_ID), "has no video file that a browser can play"),
        ("/video-file?id=" + quote(OUTSIDE_ID), "is neither in the store nor in a folder that was imported"),
        ("/video-file?id=" + quote(LINK_ID), "is neither in the store nor in a folder that was imported"),
    ):
        answer = httpx.get(site + path)
        assert answer.status_code == 404 and message in answer.text, path
    assert httpx.get(f"{site}/nothing").status_code == 404


def test_other_names_for_this_machine_get_nothing(site: str) -> None:
    assert httpx.get(site, headers={"Host": "somewhere.example"}).status_code == 400
    answer = httpx.get(site)
    assert answer.status_code == 200 and answer.headers["X-Frame-Options"] == "DENY"
    asked_by_another = {"Sec-Fetch-Site": "cross-site"}
    assert httpx.get(f"{site}/sql?query=SELECT%201", headers=asked_by_another).status_code == 403
    assert httpx.get(site, headers=asked_by_another).status_code == 200


def test_a_video_is_given_in_parts(site: str, store: Store) -> None:
    video, path = next(iter(video_files(store).items()))
    answer = httpx.get(f"{site}/video-file?id={video}", headers={"Range": "bytes=10-19"})
    assert answer.status_code == 206 and answer.content == path.read_bytes()[10:20]


def test_videos_of_imported_folders_are_given_out(store: Store) -> None:
    folder = Path(store.uri).parent
    client = TestClient(make_app(store, ["testserver"]))
    assert client.get("/video-file", params={"id": OUTSIDE_ID}).status_code == 404
    with record_run(store, "import-1", ["import"], {"source": "videos", "path": str(folder)}):
        pass
    assert client.get("/video-file", params={"id": OUTSIDE_ID}).text == "secret"
    assert client.get("/video-file", params={"id": LINK_ID}).text == "secret"


def test_sql_writes_nothing(site: str, store: Store) -> None:
    target = Path(store.uri) / "objects" / "reports" / f"{RUN}.html"
    before = target.read_bytes()
    hidden = f"WITH t AS (COPY (SELECT ''taken'') TO ''{target}'') SELECT 1"
    statement = f"FROM json_execute_serialized_sql(json_serialize_sql('{hidden}'))"
    answer = httpx.get(f"{site}/sql", params={"query": statement})
    assert answer.status_code == 200 and "json_execute_serialized_sql is refused" in answer.text
    assert target.read_bytes() == before


def test_who_is_this_machine_alone() -> None:
    assert is_local("127.0.0.1") and is_local("localhost") and is_local("::1")
    assert not is_local("0.0.0.0") and not is_local("192.168.1.5") and not is_local("example.org")


def test_a_port_that_is_taken_is_said(site: str, store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    port = site.rpartition(":")[2]
    assert main(["explore", "--port", port, "--store", store.uri]) == 1
    assert f"cannot listen on 127.0.0.1, port {port}" in capsys.readouterr().err
    assert main(["explore", "--port", "70000", "--store", store.uri]) == 1
    assert "cannot listen on 127.0.0.1, port 70000" in capsys.readouterr().err


def test_no_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explore", "--store", str(tmp_path / "none")]) == 1
    assert "there is no store at" in capsys.readouterr().err
