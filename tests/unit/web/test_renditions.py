"""Images go out in two sizes and whole, without metadata, and never when they are bombs."""

import io
import re

import pytest
from PIL import Image as Pillow

from medthink.cases.case import Image
from medthink.core.errors import DataError
from medthink.web.app.images import Renditions, cache_folder, image_size


class Store:
    """One file, however it is asked for."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.reads = 0

    def read(self, path: str) -> bytes:
        self.reads += 1
        return self.data


def file(width: int, height: int, kind: str = "JPEG", **options) -> Image:
    stream = io.BytesIO()
    Pillow.new("L", (width, height), 90).save(stream, kind, **options)
    return Image(1, "x", "images/x.jpg", Store(stream.getvalue()))


def opened(data: bytes):
    return Pillow.open(io.BytesIO(data))


@pytest.mark.parametrize(("size", "longest"), [("112", 112), ("1024", 1024), ("full", 2000)])
@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_sizes(tmp_path, size, longest, kind):
    made = Renditions(tmp_path).get(file(2000, 1000, kind), size)
    assert opened(made.data).size == (longest, longest // 2)
    assert made.media_type == f"image/{opened(made.data).format.lower()}"


def test_a_small_image_stays_as_large_as_it_is(tmp_path):
    assert opened(Renditions(tmp_path).get(file(60, 40), "1024").data).size == (60, 40)


def test_a_rendition_is_made_once(tmp_path, monkeypatch):
    image = file(2000, 1000)
    first = Renditions(tmp_path).get(image, "1024")
    monkeypatch.setattr("medthink.web.app.images.as_shown", lambda *_, **__: pytest.fail("made again"))
    assert Renditions(tmp_path).get(image, "1024") == first


def test_a_changed_file_is_another_rendition(tmp_path):
    renditions = Renditions(tmp_path)
    assert renditions.get(file(200, 100), "112").data != renditions.get(file(100, 200), "112").data


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path):
    (tmp_path / "cache").write_text("a file, not a folder")
    assert Renditions(tmp_path / "cache").get(file(300, 300), "112").data


def test_no_metadata_goes_out(tmp_path):
    exif = Pillow.Exif()
    exif[0x010E] = "PATIENT NAME"
    image = file(300, 200, exif=exif)
    assert b"PATIENT NAME" in image.read()
    for size in ("112", "1024", "full"):
        assert b"PATIENT NAME" not in Renditions(tmp_path).get(image, size).data


def test_an_image_on_its_side_is_measured_and_sent_upright(tmp_path):
    exif = Pillow.Exif()
    exif[0x0112] = 6
    image = file(300, 200, exif=exif)
    assert image_size(image) == (200, 300)
    assert opened(Renditions(tmp_path).get(image, "full").data).size == (200, 300)


@pytest.mark.parametrize("size", ["112", "1024", "full"])
def test_a_bomb_is_refused(tmp_path, size):
    with pytest.raises(DataError, match="over 50 megapixels"):
        Renditions(tmp_path).get(file(10_000, 10_000, "PNG"), size)
    assert not any(tmp_path.iterdir())


def test_the_cache_lies_where_the_user_has_it(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "medthink"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_folder() == tmp_path / "home/.cache/medthink"


def test_images_are_served_by_ids_that_tell_nothing(pages):
    page = pages.at("/runs/{seeing}/cases/105")
    addresses = re.findall(r'data-full="/images/([0-9a-f]+)/full"', page)
    assert len(set(addresses)) == 2
    assert "i105x1" not in page and "case00105" not in page and ".jpg" not in page
    answer = pages.ask(f"/images/{addresses[0]}/112")
    assert answer.status_code == 200 and answer.headers["content-type"] == "image/jpeg"
    assert answer.headers["cache-control"].startswith("private")
    assert pages.ask(f"/images/{addresses[0]}/5000").status_code == 404


def test_a_bomb_in_a_benchmark_is_named_on_the_page_and_not_sent(pages, tmp_path):
    import shutil

    from made_runs import make_run
    from web_pages import open_viewer

    shutil.copytree(pages.viewer.shelf.runs()[0].bench.benchmark.path, tmp_path / "bench")
    (tmp_path / "bench/images/case00100/i100x1.jpg").write_bytes(file(10_000, 10_000, "PNG").read())
    make_run(tmp_path / "runs/one", tmp_path / "bench")
    viewer, client = open_viewer(tmp_path / "runs", tmp_path / "cache")
    with client:
        run = viewer.shelf.runs()[0]
        page = client.get(f"/runs/{run.slug}/cases/100").text
        assert "Image 1 cannot be shown: over 50 megapixels" in page
        assert client.get(f"/images/{run.bench.image_id(100, 1)}/1024").status_code == 404
        assert client.get(f"/images/{run.bench.image_id(100, 2)}/1024").status_code == 200
