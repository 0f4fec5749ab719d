"""What a real connection may do: hold on without asking, ask without a body, refuse compression."""

import gzip
import socket
from contextlib import closing
from urllib.parse import urlsplit

import pytest

from medthink.web.app import connections
from people import Board


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connections, "WAIT_S", 0.2)
        board = Board(tmp_path_factory.mktemp("connections"))
        with board.serving() as address:
            yield urlsplit(address).netloc
        board.store.close()


def say(address: str, sent: bytes) -> bytes:
    """What the server answers until it closes."""
    host, _, port = address.partition(":")
    with closing(socket.create_connection((host, int(port)), timeout=120)) as opened:
        opened.sendall(sent.replace(b"HERE", address.encode()))
        answer = b""
        try:
            while more := opened.recv(65536):
                answer += more
        except ConnectionResetError:
            pass
    return answer


BEGUN = b"GET / HTTP/1.1\r\nHost: HERE\r\n"
POSTED = (
    b"POST /sign-in HTTP/1.1\r\nHost: HERE\r\nOrigin: http://HERE\r\n"
    b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\n\r\nname="
)


@pytest.mark.parametrize("sent", [b"", b"GET", BEGUN, POSTED])
def test_a_connection_that_stops_is_closed(address, sent):
    assert b" 200 " not in say(address, sent)


def test_a_second_request_that_stops_is_closed_too(address):
    answer = say(address, BEGUN + b"\r\n" + BEGUN)
    assert answer.count(b"HTTP/1.1 200 ") == 1


def test_a_head_has_the_length_of_the_page_and_no_body(address):
    close = b"Connection: close\r\n\r\n"
    head = say(address, BEGUN.replace(b"GET", b"HEAD") + close)
    top, _, body = head.partition(b"\r\n\r\n")
    page = say(address, BEGUN + close).partition(b"\r\n\r\n")[2]
    assert top.startswith(b"HTTP/1.1 200 ") and body == b"" and page
    assert f"content-length: {len(page)}".encode() in top.lower()


@pytest.mark.parametrize(
    ("accepted", "is_packed"),
    [("gzip", True), ("br;q=0, gzip", True), ("gzip;q=0.5", True), ("gzip;q=0", False), ("gzip; q=0.000, br", False)],
)
def test_gzip_is_sent_to_those_who_accept_it(address, accepted, is_packed):
    asked = BEGUN + f"Accept-Encoding: {accepted}\r\nConnection: close\r\n\r\n".encode()
    top, _, body = say(address, asked).partition(b"\r\n\r\n")
    assert (b"content-encoding: gzip" in top.lower()) is is_packed
    assert b"<html" in (gzip.decompress(body) if is_packed else body)
