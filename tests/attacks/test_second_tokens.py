"""Get an unintended second token: by a request during `invite --again`, or after a restored backup.

Defence: The issuer: its commands take turns, and look who has a token after the old codes ended; codes that
ended with a backup keep their names as perhaps used; a copy gives nothing, also put under a running issuer,
and is changed by nothing before `resume-after-restore`, which takes a copy alone, once; few statements
whatever the list. Known limit: whom it invited after the backup it does not know.
"""

from __future__ import annotations

import csv
import os
import shutil
import threading
from pathlib import Path

import pytest
from sqlalchemy import event, update

from collector.issuer import store
from collector.issuer.app import create_issuer
from collector.issuer.models import IssuerRow
from collector.storage.database import Database
from ldp_client.documents.errors import EXIT_REFUSED, InputError, UsageError
from tests.collector.commands import run
from tests.collector.postgresql import restore
from tests.collector.test_issuer import ask
from tests.kit.errors import raises

PEOPLE = ("Ada", "Bo", "Cy")


class Place:
    """An issuer with a key of a study, on whatever database."""

    def __init__(self, url):
        self.url = url
        self.run("init", ".", "--address", "https://issuer.example")
        self.run("key", "habits")
        self.name("people.csv", PEOPLE)

    def run(self, *words):
        run("issuer", *words, "--database", self.url)

    @staticmethod
    def name(path, names):
        Path(path).write_text("".join(f"{name}\n" for name in ("name", *names)))

    def invite(self, out, *more, names="people.csv"):
        """{name: code} of those that a list names."""
        self.run("invite", "habits", "--names", names, "--out", out, *more)
        with open(out, newline="") as file:
            return {row["name"]: row["code"] for row in csv.DictReader(file)}

    def ask(self, code):
        """Asks for a token; the answer's status."""
        app = create_issuer(self.url)
        try:
            return ask(app.test_client(), code).status_code
        finally:
            app.extensions["issuer"].engine.dispose()

    def counts(self):
        database = Database(self.url, 5)
        with database.read() as session:
            found = [(one.codes, one.tokens) for one in store.counts(session)]
        database.engine.dispose()
        return found


@pytest.fixture
def place(database_url, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Place(database_url)


@pytest.fixture
def on_postgresql(postgresql, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Place(postgresql.new_database())


@pytest.fixture
def put_back(place, postgresql):
    """Copies an issuer, lets something happen, and puts the copy in its place."""

    def put_back(meanwhile=lambda: None):
        run("backup", "--out", "copy", "--database", place.url)
        meanwhile()
        if place.url.startswith("sqlite:"):
            file = Path(place.url.removeprefix("sqlite:///"))
            for one in file.parent.glob(f"{file.name}*"):
                one.unlink()
            shutil.copy("copy", file)
        else:
            place.url = postgresql.new_database()
            restore(Path("copy"), place.url)
        os.unlink("copy")

    return put_back


def test_request_during_code_replacement_gives_no_second_token(on_postgresql, monkeypatch):
    """With the earlier code, in the moment after it was seen to be unused."""
    first = on_postgresql.invite("first.csv")
    plain, asked = store.end_unused, []

    def end_unused(*arguments):
        asked.append(on_postgresql.ask(first["Ada"]))
        return plain(*arguments)

    monkeypatch.setattr(store, "end_unused", end_unused)
    with pytest.raises(InputError, match="Ada got a token already"):
        on_postgresql.invite("second.csv", "--again")
    assert asked == [200]
    assert not os.path.exists("second.csv")
    # Nothing was changed for the others.
    assert on_postgresql.ask(first["Bo"]) == 200
    assert on_postgresql.counts() == [(3, 2)]


def test_concurrent_invitations_of_one_person_give_one_code(on_postgresql, monkeypatch):
    plain, refused = store.add_codes, []

    def again():
        try:
            on_postgresql.invite("second.csv")
        except InputError as error:
            refused.append(str(error))

    other = threading.Thread(target=again)

    def add_codes(*arguments):
        if not other.ident:
            other.start()
            other.join(1)
        return plain(*arguments)

    monkeypatch.setattr(store, "add_codes", add_codes)
    on_postgresql.invite("first.csv")
    other.join()
    assert [one.partition(" has a code already")[0] for one in refused] == ["Ada"]
    assert on_postgresql.counts() == [(3, 0)]


def test_replacing_many_codes_takes_few_statements(place):
    """One statement for each name took minutes, in which an issuer on SQLite gave no tokens."""
    place.name("people.csv", [f"person {number}" for number in range(3000)])
    place.invite("first.csv")
    seen = []

    def count(*arguments):
        seen.append(arguments[2])

    with pytest.MonkeyPatch.context() as context:
        plain = Database.__init__

        def made(self, *arguments, **more):
            plain(self, *arguments, **more)
            event.listen(self.engine, "before_cursor_execute", count)

        context.setattr(Database, "__init__", made)
        place.invite("second.csv", "--again")
    assert len(seen) < 60
    assert place.counts() == [(3000, 0)]


@pytest.mark.parametrize("which", ["--end-unused", "--keep"])
def test_restored_is_refused_for_original_database(place, which):
    """All unused codes of all studies used to end when `resume-after-restore` was run without need, or
    twice."""
    codes = place.invite("codes.csv")
    with raises(InputError, "issuer.not_restored") as refused:
        place.run("resume-after-restore", which)
    assert refused.value.exit_code == EXIT_REFUSED
    assert place.ask(codes["Ada"]) == 200


def test_restored_accepts_copy_only_once(place, put_back):
    put_back()
    place.run("resume-after-restore", "--end-unused")
    codes = place.invite("codes.csv")
    with raises(InputError, "issuer.not_restored"):
        place.run("resume-after-restore", "--end-unused")
    assert place.ask(codes["Ada"]) == 200


def test_no_second_token_by_default_after_restored_backup(place, put_back, capsys):
    codes = place.invite("codes.csv")
    place.ask(codes["Cy"])
    put_back(lambda: place.ask(codes["Ada"]))
    place.run("resume-after-restore", "--end-unused")
    said = capsys.readouterr().err
    assert "2 unused codes ended" in said
    assert "--again --second-token" in said
    for more, why in (((), "has a code already"), (("--again",), "Ada may have got a token")):
        with pytest.raises(InputError, match=why):
            place.invite("again.csv", *more)
    assert [place.ask(codes[name]) for name in ("Ada", "Bo")] == [403, 403]
    place.run("status", "habits")
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "habits, everybody: 1 of 1 code got a token; 2 more ended as a backup was put back"
    assert lines[2:] == ["  Ada: may have a token", "  Bo: may have a token", "  Cy: has a token"]
    place.name("some.csv", ["Bo"])
    again = place.invite("again.csv", "--again", "--second-token", names="some.csv")
    assert place.ask(again["Bo"]) == 200
    # Of a second backup too: what is known stays known.
    put_back()
    place.run("resume-after-restore", "--end-unused")
    place.name("some.csv", ["Ada"])
    with pytest.raises(InputError, match="Ada may have got a token"):
        place.invite("more.csv", "--again", names="some.csv")


def test_running_issuer_gives_no_token_from_copy(place):
    """`psql -f` can put a copy under a running issuer, which used to look only at its start."""
    codes = place.invite("codes.csv")
    app, database = create_issuer(place.url), Database(place.url, 5)
    client = app.test_client()
    with database.write() as session:
        session.execute(update(IssuerRow).values(is_copy=True))
    asked = ask(client, codes["Ada"])
    assert asked.status_code == 503
    assert "restored from a backup" in asked.get_json(force=True)["detail"]
    assert client.get("/readyz").status_code == 503
    place.run("resume-after-restore", "--keep")
    assert [ask(client, codes["Ada"]).status_code, client.get("/readyz").status_code] == [200, 200]
    app.extensions["issuer"].engine.dispose()
    database.engine.dispose()


def test_key_with_ended_codes_cannot_be_removed(place, put_back):
    """A person may have a token of that key, although the copy does not know of it."""
    place.invite("codes.csv")
    put_back()
    place.run("resume-after-restore", "--end-unused")
    with raises(InputError, "issuer.key_in_use"):
        place.run("key", "habits", "--remove")


@pytest.mark.parametrize(
    "words",
    [
        ("invite", "habits", "--names", "people.csv", "--again", "--out", "more.csv"),
        ("invite", "habits", "--count", "1", "--out", "more.csv"),
        ("key", "other"),
        ("key", "habits", "--remove"),
    ],
)
def test_commands_refuse_to_change_copy_before_restored(place, put_back, words):
    codes = place.invite("codes.csv")
    put_back(lambda: place.ask(codes["Ada"]))
    with raises(InputError, "issuer.restored_from_backup"):
        place.run(*words)
    assert not os.path.exists("more.csv")
    place.run("key", "habits", "--show")
    place.run("status")
    place.run("resume-after-restore", "--keep")
    assert place.counts() == [(3, 0)]


def unnamed(place, out, *more):
    place.run("invite", "habits", "--count", "2", "--out", out, *more)
    with open(out, newline="") as file:
        return [row["code"] for row in csv.DictReader(file)]


def test_new_unnamed_codes_end_earlier_ones(place, capsys):
    """For a second version each person gets another code; an unused first code would give a second token."""
    first = unnamed(place, "first.csv")
    place.invite("named.csv")
    second = unnamed(place, "second.csv", "--again")
    assert "2 codes of people without names ended" in capsys.readouterr().err
    assert [place.ask(code) for code in (*first, *second)] == [403, 403, 200, 200]
    # Those with names are others.
    assert place.counts() == [(5, 2)]
    with raises(InputError, "issuer.unnamed_tokens", "2", "s of people without names got a token"):
        unnamed(place, "third.csv", "--again")
    assert place.counts() == [(5, 2)]
    third = unnamed(place, "third.csv", "--again", "--second-token")
    assert [place.ask(code) for code in third] == [200, 200]


def test_second_token_option_needs_again(place):
    with raises(UsageError, "issuer.second_token_needs_again"):
        unnamed(place, "first.csv", "--second-token")


def test_replacing_codes_keeps_codes_of_other_stratum(place):
    """No codes end either when the stratum is misspelt and has no key."""
    for region in ("north", "south"):
        place.run("key", "panel", "--public", f"region={region}")
    command = ("invite", "panel", "--count", "2", "--public")
    for region in ("north", "south"):
        place.run(*command, f"region={region}", "--out", f"{region}.csv")
    with raises(InputError, "issuer.stratum_without_key", "region=noth"):
        place.run(*command, "region=noth", "--again", "--out", "noth.csv")
    place.run(*command, "region=north", "--again", "--out", "again.csv")
    assert sorted(place.counts()) == [(0, 0), (2, 0), (2, 0)]
