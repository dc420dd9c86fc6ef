"""The page for one video, in a real browser."""

import base64
import io
import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, expect

from storage import Store
from tasks.grounding.articles import article_in, read_article
from tasks.grounding.files import as_chapters
from tasks.grounding.grounding import Grounded, GroundingRequest, ground
from tasks.pages.video_page import video_page
from tasks.pages.video_view import Player, view_of, with_video_file
from tasks.pipeline.job import Job
from tests.browser import NARROW, WIDE, findings, is_too_wide, opened, until
from tests.trained_store import video_files

EVIL = "<script>document.title = 'taken'</script><img src=x onerror=alert(1)> & \"quoted\" 'text'"
LOOKS = [(WIDE, False), (WIDE, True), (NARROW, False), (NARROW, True)]


@pytest.fixture(scope="module")
def grounded(trained: Job) -> Grounded:
    store = Store(trained.store)
    video = next(iter(video_files(store)))
    rows = store.table("annotations").snapshot().where(benchmark="htstep").read().to_pylist()
    task = next(row["article_id"] for row in rows if row["video_id"] == video)
    found = ground(GroundingRequest(video, article_in(store, task), device="cpu"), store)
    steps = [replace(step, presence=0.9 if place else 0.1) for place, step in enumerate(found.result.steps)]
    return replace(found, result=replace(found.result, steps=steps))


@pytest.fixture(scope="module")
def address(trained: Job, grounded: Grounded, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("page") / "page.html"
    path.write_text(video_page(grounded, Store(trained.store)))
    return path.as_uri()


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    with opened(browser, address) as found:
        yield found


def now(page: Page) -> float:
    return float(page.evaluate("document.querySelector('video').currentTime"))


def wait_for_video(page: Page) -> None:
    until(page, "document.querySelector('video').readyState >= 2")


def test_the_video_is_part_of_the_page_and_plays(page: Page, grounded: Grounded) -> None:
    wait_for_video(page)
    length = float(page.evaluate("document.querySelector('video').duration"))
    assert length == pytest.approx(grounded.result.num_seconds, abs=1)
    page.evaluate("document.querySelector('video').play()")
    until(page, "document.querySelector('video').currentTime > 0.3")


def test_a_click_on_a_step_seeks_the_video_and_so_does_the_keyboard(page: Page, grounded: Grounded) -> None:
    wait_for_video(page)
    buttons = page.locator("button.step")
    assert buttons.count() == len(grounded.result.steps)
    for place in (1, 0):
        buttons.nth(place).click()
        until(page, "!document.querySelector('video').seeking")
        assert now(page) == pytest.approx(grounded.result.steps[place].start_s, abs=0.05)
    buttons.nth(2).focus()
    page.keyboard.press("Enter")
    assert now(page) == pytest.approx(grounded.result.steps[2].start_s, abs=0.05)
    page.locator(".time").focus()
    before = now(page)
    page.keyboard.press("ArrowRight")
    assert now(page) == pytest.approx(before + 0.1, abs=0.06)


def test_a_click_on_a_matrix_seeks_to_its_time_and_all_tracks_show_it(page: Page, grounded: Grounded) -> None:
    wait_for_video(page)
    heat_map = page.locator(".map").first
    box = heat_map.bounding_box()
    assert box is not None
    heat_map.click(position={"x": box["width"] / 4, "y": 10})
    assert now(page) == pytest.approx(grounded.result.num_seconds / 4, abs=0.3)
    shares = page.evaluate("""[...document.querySelectorAll('.track')].map(track =>
        parseFloat(getComputedStyle(track, '::after').left) / track.getBoundingClientRect().width)""")
    assert len(shares) > 8 and all(share == pytest.approx(0.25, abs=0.01) for share in shares)


def test_heat_maps_are_drawn_bright_where_the_matrix_is_high(page: Page, grounded: Grounded) -> None:
    assert page.locator(".map img").count() == len(grounded.result.matrices) == 4
    for name in ("direct", "narrations"):
        matrix = grounded.result.matrices[name]
        image = page.locator(f".map img[alt^='{name} ']")
        shot = np.asarray(Image.open(io.BytesIO(image.screenshot())).convert("RGB"), np.float64)
        rows = (np.arange(len(matrix)) + 0.5) / len(matrix) * shot.shape[0]
        columns = (np.arange(matrix.shape[1]) + 0.5) / matrix.shape[1] * shot.shape[1]
        seen = shot[rows.astype(int)][:, columns.astype(int)] @ [0.3, 0.6, 0.1]
        order = np.argsort(matrix.ravel())
        tenth = max(matrix.size // 10, 1)
        assert seen.ravel()[order[-tenth:]].mean() > seen.ravel()[order[:tenth]].mean() + 60
        assert np.corrcoef(seen.ravel(), matrix.ravel())[0, 1] > 0.95


def test_what_is_known_is_on_it(page: Page, grounded: Grounded) -> None:
    assert page.locator(".step.absent").count() == page.locator(".bar.absent:not(.key .bar)").count() == 1
    expect(page.locator(".step.absent").first).to_contain_text("not shown")
    assert page.locator(".step ~ .track .truth").count() > 0
    assert page.locator(".narration-list li").count() == len(grounded.video_input.narrations) > 0
    assert page.title() == grounded.article.title


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_everybody_can_read_it(browser: Browser, address: str, width: int, dark: bool) -> None:
    with opened(browser, address, width, dark) as page:
        assert findings(page) == [] and not is_too_wide(page)


def test_the_keyboard_goes_through_it_in_order(page: Page) -> None:
    seen = []
    for _ in range(25):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.className || document.activeElement.tagName"))
    assert seen[0] == "skip" and seen[1] == "VIDEO"
    assert seen.index("time") < next(place for place, name in enumerate(seen) if name.startswith("step"))


def test_a_training_videos_labels_are_shown_by_round(trained: Job, browser: Browser, tmp_path: Path) -> None:
    store = Store(trained.store)
    label = store.table("pseudo_labels").snapshot().read().to_pylist()[0]
    found = ground(GroundingRequest(label["video_id"], article_in(store, label["article_id"]), device="cpu"), store)
    (tmp_path / "page.html").write_text(video_page(found, store))
    with opened(browser, (tmp_path / "page.html").as_uri()) as page:
        assert page.locator(".labels").count() == 3
        assert page.locator(".labels .line").count() == 3 * len(found.result.steps)
        expect(page.locator(".no-video")).to_contain_text("there is no file of this video")
        page.locator("button.step").first.click()
        assert page.locator(".now").inner_text() != ""


def test_text_is_shown_as_text(trained: Job, browser: Browser, tmp_path: Path) -> None:
    store = Store(trained.store)
    (tmp_path / "article.json").write_text(json.dumps({"title": EVIL, "steps": [EVIL, "</script>"]}))
    (tmp_path / "narrations.json").write_text(json.dumps([{"text": EVIL, "start": 0, "end": 1}]))
    request = GroundingRequest(
        next(iter(video_files(store))),
        article=read_article(tmp_path / "article.json"),
        narrations=tmp_path / "narrations.json",
        device="cpu",
    )
    found = ground(request, store)
    (tmp_path / "page.html").write_text(video_page(found, store))
    with opened(browser, (tmp_path / "page.html").as_uri()) as page:
        assert page.title() == EVIL
        assert page.locator("h1").inner_text() == EVIL
        assert page.locator(".what").first.inner_text() == EVIL
        assert page.locator(".narration-list span").first.inner_text() == EVIL


def test_the_browser_takes_the_chapters(browser: Browser, grounded: Grounded, tmp_path: Path) -> None:
    """WebVTT as Chromium reads it: all cues, in order, none across another."""
    text = as_chapters(grounded)
    (tmp_path / "page.html").write_text("<link rel=icon href=data:,><video></video>")
    with opened(browser, (tmp_path / "page.html").as_uri()) as page:
        cues = page.evaluate(
            """text => new Promise((done, failed) => {
                const track = document.createElement('track');
                track.kind = 'chapters'; track.default = true;
                track.src = URL.createObjectURL(new Blob([text], {type: 'text/vtt'}));
                track.onload = () => done([...track.track.cues].map(cue => [cue.startTime, cue.endTime, cue.text]));
                track.onerror = () => failed(new Error('refused'));
                document.querySelector('video').append(track);
                track.track.mode = 'hidden';
            })""",
            text,
        )
    assert len(cues) == text.count(" --> ") > 0
    assert all(before[1] <= after[0] for before, after in pairwise(cues))
    chapters = " / ".join(cue[2] for cue in cues)
    assert all(step.text in chapters for step in grounded.result.steps if step.is_shown)


def test_a_video_that_cannot_be_played_is_said_so(
    trained: Job, grounded: Grounded, browser: Browser, tmp_path: Path
) -> None:
    (tmp_path / "video.mp4").write_bytes(b"no video")
    broken = replace(grounded, video_input=replace(grounded.video_input, video_file=str(tmp_path / "video.mp4")))
    (tmp_path / "page.html").write_text(video_page(broken, None))
    with opened(browser, (tmp_path / "page.html").as_uri()) as page:
        expect(page.locator(".no-video")).to_be_visible()


def test_large_videos_are_looked_for_where_they_are(grounded: Grounded, s3_uri: str) -> None:
    view = view_of(grounded, None)
    video_file = str(grounded.video_input.video_file)
    assert with_video_file(view, video_file).player == Player(
        "video/mp4", data=base64.b64encode(Path(video_file).read_bytes()).decode()
    )
    assert with_video_file(view, video_file, 0).player == Player(
        "video/mp4", address=Path(video_file).resolve().as_uri()
    )
    copied = Store(s3_uri).objects.upload("videos/video.mp4", Path(video_file))
    assert with_video_file(view, copied).player == with_video_file(view, video_file).player
    far = with_video_file(view, copied, 0)
    assert far.player is None and "too large for a page" in far.no_video and copied in far.no_video
    gone = with_video_file(view, copied.replace("video.mp4", "gone.mp4"))
    assert gone.player is None and "cannot be read" in gone.no_video
    assert with_video_file(view, "/etc/passwd").no_video == "browsers cannot play passwd"


def test_without_calibration_no_step_is_marked_as_shown(grounded: Grounded, browser: Browser, tmp_path: Path) -> None:
    steps = [replace(step, presence=None) for step in grounded.result.steps]
    unsure = replace(grounded, result=replace(grounded.result, steps=steps))
    (tmp_path / "page.html").write_text(video_page(unsure, None))
    with opened(browser, (tmp_path / "page.html").as_uri()) as page:
        expect(page.locator(".key")).to_have_text("the best time of a step; whether it is shown is unknown")
        assert page.locator(".bar.shown").count() == 0 and "%" not in page.locator(".step").first.inner_text()


def test_repeated_steps_have_the_same_annotations(trained: Job, grounded: Grounded) -> None:
    steps = grounded.article.steps
    again = replace(grounded, article=replace(grounded.article, steps=[*steps, *steps]))
    truth = view_of(again, Store(trained.store)).truth
    assert truth and all(truth[place] == truth[place + len(steps)] for place in truth if place < len(steps))
