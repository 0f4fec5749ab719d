"""The container and compose files: what they name is there, their commands parse, and the proxy is believed."""

import asyncio
import http.client
import re
import threading
import tomllib
from pathlib import Path

import pytest
import yaml

from medthink.cli.command import run_command
from medthink.core.errors import DataError
from medthink.web.app.server import ServeSettings, make_server, open_port, read_settings
from medthink.web.serve import serve_application
from people import Board

TOP = Path(__file__).parents[3]
DEPLOY = TOP / "deploy"


@pytest.fixture(scope="module")
def compose():
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())


def test_every_file_that_the_compose_file_names_is_there(compose):
    for service in compose["services"].values():
        if "build" in service:
            context = DEPLOY / service["build"]["context"]
            assert (context / service["build"]["dockerfile"]).resolve() == DEPLOY / "Containerfile"
        sources = [volume.partition(":")[0] for volume in service["volumes"]]
        assert [one for one in sources if one.startswith("./") and not (DEPLOY / one).is_file()] == []
        kept = [one for one in sources if not one.startswith((".", "$"))]
        assert set(kept) <= compose["volumes"].keys()


def test_every_variable_is_in_the_example(compose):
    asked = set(re.findall(r"\$\{(\w+)", (DEPLOY / "compose.yaml").read_text()))
    asked |= set(re.findall(r"\{\$(\w+)\}", (DEPLOY / "Caddyfile").read_text()))
    told = {line.partition("=")[0] for line in (DEPLOY / "example.env").read_text().splitlines() if line[0] != "#"}
    assert asked == told


@pytest.mark.parametrize("service", ["web", "worker"])
def test_the_commands_are_commands_of_ours(compose, service, tmp_path, capsys):
    places = {"/data": str(tmp_path), "/etc/medthink/serve.toml": str(DEPLOY / "serve.toml")}
    words = [_here(word, places) for word in compose["services"][service]["command"]]
    # Help is printed only where every word before it is understood.
    assert run_command([*words, "--help"]) == 0
    told = capsys.readouterr().out
    flags = {word.partition("=")[0] for word in words if word.startswith("--")}
    assert [flag for flag in flags if flag not in told] == []


def _here(word: str, places: dict[str, str]) -> str:
    flag, _, value = word.partition("=")
    return f"{flag}={places[value]}" if value in places else word


def test_settings_domain_ports_and_limits_agree(compose):
    settings = read_settings(DEPLOY / "serve.toml")
    web, caddy = compose["services"]["web"], (DEPLOY / "Caddyfile").read_text()
    example = (DEPLOY / "example.env").read_text()
    assert f"MEDTHINK_DOMAIN={settings.hosts[0]}" in example and settings.is_secure
    port = next(word.partition("=")[2] for word in web["command"] if word.startswith("--port"))
    assert web["expose"] == [port] and f"reverse_proxy web:{port}" in caddy
    assert f"127.0.0.1:{port}/" in web["healthcheck"]["test"][-1]
    assert int(re.search(r"max_size (\d+)MB", caddy)[1]) * 10**6 > settings.largest_upload


def test_the_container_copies_and_installs_what_is_there():
    text = (DEPLOY / "Containerfile").read_text()
    named = [word for line in re.findall(r"^COPY (.+) \S+$", text, re.MULTILINE) for word in line.split()]
    assert [name for name in named if not (TOP / name).exists()] == []
    kept = (DEPLOY / "Containerfile.dockerignore").read_text().splitlines()
    assert {f"!{name}" for name in named} <= set(kept)
    extras = re.search(r"'\.\[(.+)\]'", text)[1].split(",")
    assert set(extras) <= tomllib.loads((TOP / "pyproject.toml").read_text())["project"]["optional-dependencies"].keys()
    assert re.search(r"^USER medthink$", text, re.MULTILINE) and 'ENTRYPOINT ["medthink"]' in text


def sign_in_from(board: Board, proxies: tuple[str, ...], address: str) -> int:
    """The status of a wrong password, sent by a proxy on this machine that names who asked."""
    app = serve_application(board.served, hosts=["127.0.0.1"])
    with open_port(None) as opened:
        server = make_server(app, proxies)
        thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[opened])))
        thread.start()
        connection = http.client.HTTPConnection("127.0.0.1", opened.getsockname()[1], timeout=120)
        headers = {"Host": "board.example.org", "Origin": "https://board.example.org", "X-Forwarded-For": address}
        headers |= {"X-Forwarded-Proto": "https", "Content-Type": "application/x-www-form-urlencoded"}
        connection.request("POST", "/sign-in", "name=ann&password=wrong", headers)
        status = connection.getresponse().status
        connection.close()
        server.should_exit = True
        thread.join(timeout=120)
    return status


def test_who_asked_is_known_behind_a_proxy_that_is_trusted(tmp_path, cheap_passwords, monkeypatch):
    asked: list[str] = []
    monkeypatch.setattr("medthink.web.accounts.sign_in.limit_sign_in", lambda _, __, address: asked.append(address))
    settings = ServeSettings(public_url="https://board.example.org")
    board = Board(tmp_path, settings=settings)
    assert sign_in_from(board, settings.trusted_proxies, "203.0.113.7") == 422
    assert sign_in_from(board, ("10.0.0.0/8",), "203.0.113.8") == 422
    assert sign_in_from(board, ServeSettings().trusted_proxies, "203.0.113.9") == 422
    assert asked == ["203.0.113.7", "127.0.0.1", "127.0.0.1"]
    board.store.close()


def test_a_proxy_that_is_no_address_is_named(tmp_path):
    (tmp_path / "serve.toml").write_text('proxies = ["everywhere"]\n')
    with pytest.raises(DataError, match="'everywhere' is not an address"):
        read_settings(tmp_path / "serve.toml")
