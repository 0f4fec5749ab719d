import os
import pickle
import socket
import struct
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from medthink.cases.images import stores
from medthink.cases.images.stores import FolderImages, NoImages, ZipImages, path_problem
from medthink.core.errors import DataError

GOOD = "images/case00001/a.jpg"
UNSAFE = [
    "",
    "..",
    "../secret.jpg",
    "images/../../secret.jpg",
    "images/case00001/../../../secret.jpg",
    "images/./a.jpg",
    "images//a.jpg",
    "/etc/hostname",
    "~/a.jpg",
    "images\\..\\..\\secret.jpg",
    "C:/secret.jpg",
    "http://example.org/a.jpg",
    "file:///etc/hostname",
    "data:image/png;base64,AAAA",
    "images/a.jpg\0.png",
    "images/a\n.jpg",
    "images/" + "a" * 4096,
    "images/" + "é" * 200,
    "a/" * 600 + "a",
    "images/case00001/",
    "test.jsonl",
    "images",
    "imagesx/a.jpg",
    "IMAGES/case00001/a.jpg",
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "bench"
    root.mkdir()
    (root / "test.jsonl").write_bytes(b"the answers")
    (root / "images/case00001").mkdir(parents=True)
    (root / GOOD).write_bytes(b"picture")
    (tmp_path / "secret.jpg").write_bytes(b"secret")
    return root


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "images.zip"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(GOOD, b"picture")
        file.writestr("../secret.jpg", b"secret")
        file.writestr("__MACOSX/images/._a.jpg", b"")
        file.writestr("images/case00001/.DS_Store", b"")
    return path


@pytest.mark.parametrize("path", UNSAFE)
def test_an_unsafe_path_is_refused_by_every_store(path: str, root: Path, archive: Path) -> None:
    assert path_problem(path)
    for store in (FolderImages(root), ZipImages(archive), NoImages(root)):
        assert not store.has(path)
        assert store.problem(path)
        with pytest.raises(DataError):
            store.read(path)


def test_an_unsafe_path_opens_nothing(root: Path, archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "open", lambda *_, **__: pytest.fail("something was opened"))
    monkeypatch.setattr(os.path, "realpath", lambda *_, **__: pytest.fail("something was resolved"))
    store = FolderImages.__new__(FolderImages)
    store.root, store._real_root = root, str(root)
    for path in UNSAFE:
        with pytest.raises(DataError):
            store.read(path)


@pytest.mark.parametrize("path", ["images/Case00001/A.JPG", "images/case00001/b.jpg", "images/case00001"])
def test_a_path_that_is_not_exactly_there_is_missing(path: str, root: Path, archive: Path) -> None:
    for store in (FolderImages(root), ZipImages(archive)):
        assert store.problem(path) == "no such image"
        with pytest.raises(DataError, match="no such image"):
            store.read(path)


def test_a_link_to_another_file_of_the_benchmark_is_not_read_as_a_picture(root: Path) -> None:
    (root / "test.jsonl").write_text('{"correct_answer": "B"}')
    (root / "images/answers.jpg").symlink_to(root / "test.jsonl")
    assert (
        FolderImages(root).problem("images/answers.jpg") == "a symbolic link leads out of images/: 'images/answers.jpg'"
    )


def test_a_benchmark_in_the_hubs_cache_can_be_opened(tmp_path: Path) -> None:
    blobs, snapshot = tmp_path / "datasets--lab--bench/blobs", tmp_path / "datasets--lab--bench/snapshots/abc"
    (snapshot / "images/case00001").mkdir(parents=True)
    blobs.mkdir()
    (blobs / "0a1b").write_bytes(b"picture")
    (snapshot / "images/case00001/a.jpg").symlink_to("../../../../blobs/0a1b")
    store = FolderImages(snapshot)
    assert store.read("images/case00001/a.jpg") == b"picture"
    assert store.listing() == {"images/case00001": ["images/case00001/a.jpg"]}


def test_links_may_stay_inside_the_images_but_not_leave_them(root: Path, tmp_path: Path) -> None:
    (root / "images/inside.jpg").symlink_to(root / GOOD)
    (root / "images/outside.jpg").symlink_to(tmp_path / "secret.jpg")
    (root / "images/folder").symlink_to(tmp_path)
    (root / "images/loop.jpg").symlink_to(root / "images/loop.jpg")
    (tmp_path / "benchmark-twin").mkdir()
    (tmp_path / "benchmark-twin/a.jpg").write_bytes(b"secret")
    (root / "images/twin.jpg").symlink_to(tmp_path / "benchmark-twin/a.jpg")
    store = FolderImages(root)
    assert store.read("images/inside.jpg") == b"picture"
    links = {path: path for path in ("images/outside.jpg", "images/twin.jpg")}
    for path, link in (links | {"images/folder/secret.jpg": "images/folder"}).items():
        assert store.problem(path) == f"a symbolic link leads out of images/: '{link}'"
        with pytest.raises(DataError, match="leads out"):
            store.read(path)
    assert not store.has("images/loop.jpg")


def test_a_root_that_is_itself_a_link_works(root: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(root)
    assert FolderImages(tmp_path / "link").read(GOOD) == b"picture"


def test_what_is_no_regular_file_is_not_read(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(root / "images/pipe.jpg")
    with socket.socket(socket.AF_UNIX) as listener:
        monkeypatch.chdir(root / "images")
        listener.bind("socket.jpg")
    for path in ("images/pipe.jpg", "images/socket.jpg", "images/case00001"):
        with pytest.raises(DataError):
            FolderImages(root).read(path)


def test_a_file_swapped_for_a_pipe_does_not_hang(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(root / "images/pipe.jpg")
    monkeypatch.setattr(FolderImages, "_locate", lambda _, path: (str(root / path), "", None))
    with pytest.raises(DataError, match="not a regular file"):
        FolderImages(root).read("images/pipe.jpg")


def test_the_size_limit_holds_in_every_store(root: Path, archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "MAX_IMAGE_BYTES", 6)
    for store in (FolderImages(root), ZipImages(archive)):
        with pytest.raises(DataError, match="larger than"):
            store.read(GOOD)


def test_an_unreadable_file_is_a_data_error(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(DataError, match="Permission denied"):
        FolderImages(root).read(GOOD)


def test_stores_list_what_they_hold(root: Path, archive: Path) -> None:
    (root / "images/case00000").mkdir()
    other = "images/case00000/z.jpg"
    (root / other).write_bytes(b"")
    (root / "images/.hidden").write_bytes(b"")
    assert FolderImages(root).listing() == {"images/case00000": [other], "images/case00001": [GOOD]}
    assert ZipImages(archive).listing() == {"": ["../secret.jpg"], "images/case00001": [GOOD]}
    assert NoImages(root).listing() == {}


def test_a_zip_may_start_below_its_images_folder(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "images.zip", "w") as file:
        file.writestr("case00001/a.jpg", b"picture")
    store = ZipImages(tmp_path / "images.zip")
    assert store.read(GOOD) == b"picture"
    assert store.listing() == {"images/case00001": [GOOD]}


def test_a_link_put_there_after_the_path_was_judged_is_not_followed(root: Path, tmp_path: Path) -> None:
    (tmp_path / "outside.jpg").write_bytes(b"outside")
    link = root / "images/link.jpg"
    link.symlink_to(tmp_path / "outside.jpg")
    with pytest.raises(OSError, match="symbolic links"):
        FolderImages(root)._read_regular(str(link), "images/link.jpg")


def test_a_zip_bomb_is_refused_by_its_declared_size(tmp_path: Path) -> None:
    bomb = tmp_path / "images.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as file:
        with file.open("images/ratio.jpg", "w") as member:
            for _ in range(20):
                member.write(bytes(1024 * 1024))
        with file.open("images/size.jpg", "w") as member:
            for _ in range(65):
                member.write(bytes(1024 * 1024))
    with pytest.raises(DataError, match="100 times"):
        ZipImages(bomb).read("images/ratio.jpg")
    with pytest.raises(DataError, match=r"images.zip: 'images/size.jpg': larger than 64 MB\n"):
        ZipImages(bomb).read("images/size.jpg")


def test_a_zip_that_lies_about_a_size_is_not_believed(tmp_path: Path) -> None:
    path = tmp_path / "images.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("images/a.jpg", bytes(40 * 1024 * 1024))
    data = bytearray(path.read_bytes())
    directory = data.rindex(b"PK\x01\x02")
    struct.pack_into("<I", data, directory + 24, 1000)
    path.write_bytes(data)
    with pytest.raises(DataError, match="cannot be unpacked"):
        ZipImages(path).read("images/a.jpg")


def test_broken_zips_are_data_errors(tmp_path: Path) -> None:
    path = tmp_path / "images.zip"
    with pytest.raises(DataError, match="no such file"):
        ZipImages(path).has(GOOD)
    path.write_bytes(b"PK\x03\x04 not a zip")
    with pytest.raises(DataError, match="cannot be read as a zip"):
        ZipImages(path).has(GOOD)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(GOOD, b"picture " * 100)
    data = bytearray(path.read_bytes())
    data[80] ^= 1
    path.write_bytes(data)
    with pytest.raises(DataError, match="cannot be unpacked"):
        ZipImages(path).read(GOOD)
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)
    with pytest.raises(DataError, match="encrypted"):
        ZipImages(path).read(GOOD)


def test_a_zip_with_a_nameless_member_is_read(tmp_path: Path) -> None:
    path = tmp_path / "images.zip"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("Xnameless", b"")
        file.writestr("images/case00001/", b"")
        file.writestr(GOOD, b"picture")
    path.write_bytes(path.read_bytes().replace(b"Xnameless", b"\0nameless"))
    assert ZipImages(path).listing() == {"images/case00001": [GOOD]}


def test_a_zip_is_opened_once_and_read_from_many_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    contents = {f"images/{index}.jpg": os.urandom(5000) for index in range(200)}
    with zipfile.ZipFile(tmp_path / "images.zip", "w", zipfile.ZIP_DEFLATED) as file:
        for path, data in contents.items():
            file.writestr(path, data)
    opened = []
    real = zipfile.ZipFile
    monkeypatch.setattr(zipfile, "ZipFile", lambda path: (opened.append(path), real(path))[1])
    store = ZipImages(tmp_path / "images.zip")
    start = threading.Barrier(8)

    def read_all(_: int) -> bool:
        start.wait()
        return all(store.read(path) == data for path, data in contents.items())

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(read_all, range(8)))
    assert len(opened) == 1


def test_stores_travel_between_processes(root: Path, archive: Path) -> None:
    for store in (FolderImages(root), ZipImages(archive)):
        store.read(GOOD)
        assert pickle.loads(pickle.dumps(store)).read(GOOD) == b"picture"


def test_a_refusal_is_safe_to_print(root: Path) -> None:
    with pytest.raises(DataError) as caught:
        FolderImages(root).read("images/\x1b[31m" + "a" * 5000)
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 500
