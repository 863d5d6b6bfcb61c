"""The collector's commands, run as `ldpkit` runs them, at a collector in this process where they ask one."""

from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from collector import server
from ldp_client.device.http import Answer
from ldpkit.cli import client, main
from tests.kit.commands import run

URL = "http://127.0.0.1:1"
# Of the collectors of these tests.
TOKEN = "token-of-the-operator"


def said_at_start(database, capsys):
    """What `ldpkit serve` says before it serves, which is left out."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server, "serve_collector", lambda _settings, **_options: None)
        patch.setenv("LDPKIT_TOKEN", TOKEN)
        patch.setenv("LDPKIT_DATABASE", database)
        run("serve")
    return capsys.readouterr().err


def main_on(database, *words):
    """The exit code of a command on a database."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LDPKIT_DATABASE", database)
        return main(list(words))


def run_on(database, *words):
    """Run a command on a database; it succeeds, or raises what it refuses with."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LDPKIT_DATABASE", database)
        run(*words)


def run_export(url, out, token=TOKEN):
    """Export `habits` from a collector by its address; it succeeds, or raises what it refuses with."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LDPKIT_TOKEN", token)
        run("export", "habits", "--collector", url, "--out", str(out))


def lines(capsys):
    """The lines that were printed since the last look."""
    return capsys.readouterr().out.splitlines()


@pytest.fixture
def never_pause(monkeypatch):
    """Have commands that failed try again at once."""
    clock = SimpleNamespace(monotonic=client.time.monotonic, sleep=lambda _seconds: None)
    monkeypatch.setattr(client, "time", clock)


@contextmanager
def answering(app):
    """Have the commands' requests to URL answered by an application; they send its operator's token."""

    def exchange(request, _most, _seconds):
        headers = {**request.headers, **request.unredirected_hdrs}
        path, body = request.full_url.removeprefix(URL), request.data
        response = app.test_client().open(path, method=request.get_method(), headers=headers, data=body)
        return Answer(response.status_code, response.headers, response.data)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client, "exchange", exchange)
        patch.setattr(client, "ATTEMPTS", 1)
        patch.setenv("LDPKIT_TOKEN", app.extensions["ldpkit"].settings.token)
        yield


def operate(app, *arguments):
    """Run an operator's command at an application; it succeeds, or raises what it refuses with."""
    with answering(app):
        run(*arguments, "--collector", URL)


def exit_code(app, *arguments):
    """The exit code of an operator's command at an application."""
    with answering(app):
        return main([*arguments, "--collector", URL])
