"""No person gets an unintended second token: by another name, during `invite --again`, or after a restore."""

from __future__ import annotations

import csv
import os
import shutil
import threading
from pathlib import Path

import pytest
from sqlalchemy import update

from collector.backup import restore
from collector.db import Database
from collector.issuer import app as issuer_app
from collector.issuer import issue
from collector.issuer.issue import Person
from collector.migrations import make
from collector.models import CollectorRow
from collector.tickets import codes
from ldp_client.documents.errors import EXIT_REFUSED, InputError, TransferError
from tests.kit.errors import raises
from tests.kit.issuing import ask, invited, issuer_at, made_pairs
from tests.kit.operators import operate, run_on

PEOPLE = ("Ada", "Bo", "Cy")


class Place:
    """An issuer with a key of a study, on whatever database."""

    def __init__(self, url):
        self.url = url
        make(Database(url, 5))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(issue, "new_pair", lambda: made_pairs()[0])
            self.run("tickets", "key", "habits")
        self.name("people.csv", PEOPLE)

    def run(self, *words):
        app = issuer_at(self.url)
        try:
            operate(app, *words)
        finally:
            app.extensions["ldpkit"].close()

    def resume(self, which):
        run_on(self.url, "tickets", "resume", "--unused", which)

    @staticmethod
    def name(path, names):
        Path(path).write_text("".join(f"{name}\n" for name in ("name", *names)))

    def invite(self, out, *more, names="people.csv"):
        """{name: code} of those that a list names."""
        self.run("invite", "habits", "--names", names, "--out", out, *more)
        with open(out, newline="") as file:
            return {row["name"]: row["ticket"] for row in csv.DictReader(file)}

    def ask(self, code):
        """Asks for a token; the answer's status."""
        app = issuer_at(self.url)
        try:
            return ask(app.test_client(), code).status_code
        finally:
            app.extensions["ldpkit"].close()

    def counts(self, study="habits"):
        database = Database(self.url, 5)
        with database.read() as session:
            found = [(one.tickets, one.tokens) for one in issue.counts(session, study)]
        database.engine.dispose()
        return found


@pytest.fixture
def place(database_url, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Place(database_url)


@pytest.fixture
def small(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Place(f"sqlite:///{tmp_path / 'issuer.sqlite3'}")


@pytest.fixture
def on_postgresql(postgresql, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Place(postgresql.new_database())


@pytest.fixture
def put_back(place, postgresql):
    """Copies an issuer, lets something happen, and puts the copy in its place."""

    def put_back(meanwhile=lambda: None):
        run_on(place.url, "backup", "--out", "copy")
        meanwhile()
        if place.url.startswith("sqlite:"):
            file = Path(place.url.removeprefix("sqlite:///"))
            for one in file.parent.glob(f"{file.name}*"):
                one.unlink()
            shutil.copy("copy", file)
        else:
            place.url = postgresql.new_database()
            restore(Database(place.url, 10), Path("copy"))
        os.unlink("copy")

    return put_back


@pytest.mark.attack(4)
def test_request_during_code_replacement_gives_no_second_token(on_postgresql, monkeypatch):
    """A person asks with the earlier code, in the moment after it was seen to be unused."""
    first = on_postgresql.invite("first.csv")
    plain, asked = issue.end_unused, []

    def end_unused(*arguments):
        asked.append(on_postgresql.ask(first["Ada"]))
        return plain(*arguments)

    monkeypatch.setattr(issue, "end_unused", end_unused)
    with pytest.raises(TransferError, match="Ada got a token already"):
        on_postgresql.invite("second.csv", "--again", "unused")
    assert asked == [200]
    assert not os.path.exists("second.csv")
    # Nothing was changed for the others.
    assert on_postgresql.ask(first["Bo"]) == 200
    assert on_postgresql.counts() == [(3, 2)]


@pytest.mark.attack(4)
def test_concurrent_tickets_of_one_person_give_one_code(on_postgresql, monkeypatch):
    """Two operators invite the same person at once."""
    plain, refused = codes.new_word, []

    def again():
        database = Database(on_postgresql.url, 30)
        try:
            with database.write() as session:
                invited(session, "habits", [Person("Ada", {})])
        except InputError as error:
            refused.append(str(error))
        database.engine.dispose()

    other = threading.Thread(target=again)

    def new_word(*arguments):
        if not other.ident:
            other.start()
            other.join(1)
        return plain(*arguments)

    monkeypatch.setattr(codes, "new_word", new_word)
    on_postgresql.invite("first.csv")
    other.join()
    assert ["Ada has a ticket already" in one for one in refused] == [True]
    assert on_postgresql.counts() == [(3, 0)]


def test_restored_is_refused_for_original_database(small):
    """All unused tickets of all studies would end when the command is run without need."""
    made = small.invite("codes.csv")
    for which in ("end", "keep"):
        with raises(InputError, "issuer.not_restored") as refused:
            small.resume(which)
        assert refused.value.exit_code == EXIT_REFUSED
    assert small.ask(made["Ada"]) == 200


@pytest.mark.attack(4)
def test_no_second_token_by_default_after_restored_backup(place, put_back, capsys):
    """A person who got a token after the backup asks again once it is restored."""
    made = place.invite("codes.csv")
    place.ask(made["Cy"])
    put_back(lambda: place.ask(made["Ada"]))
    place.resume("end")
    said = capsys.readouterr().err
    assert "2 unused tickets ended" in said
    assert "--again all" in said
    for more, why in (((), "has a ticket already"), (("--again", "unused"), "Ada may have got a token")):
        with pytest.raises(TransferError, match=why):
            place.invite("again.csv", *more)
    assert [place.ask(made[name]) for name in ("Ada", "Bo")] == [409, 409]
    place.run("tickets", "status", "habits")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "everybody: 1 of 1 ticket got a token; 2 more ended as a backup was put back"
    assert lines[1:] == ["  Ada: may have a token", "  Bo: may have a token", "  Cy: has a token"]
    place.name("some.csv", ["Bo"])
    again = place.invite("again.csv", "--again", "all", names="some.csv")
    assert place.ask(again["Bo"]) == 200
    # Of a second backup too: what is known stays known.
    put_back()
    place.resume("end")
    place.name("some.csv", ["Ada"])
    with pytest.raises(TransferError, match="Ada may have got a token"):
        place.invite("more.csv", "--again", "unused", names="some.csv")


@pytest.mark.attack(4)
def test_running_issuer_gives_no_token_from_copy(small):
    """A copy is put under a running issuer, which used to look only at its start."""
    made = small.invite("codes.csv")
    app, database = issuer_at(small.url), Database(small.url, 5)
    client = app.test_client()
    with database.write() as session:
        session.execute(update(CollectorRow).values(is_copy=True))
    asked = ask(client, made["Ada"])
    assert asked.status_code == 503
    assert "restored from a backup" in asked.get_json(force=True)["detail"]
    small.resume("keep")
    assert ask(client, made["Ada"]).status_code == 200
    app.extensions["ldpkit"].close()
    database.engine.dispose()


@pytest.mark.attack(4)
def test_commands_refuse_to_change_copy_before_restored(place, put_back):
    """An operator invites people at a restored copy, which does not know who got a token since."""
    made = place.invite("codes.csv")
    put_back(lambda: place.ask(made["Ada"]))
    with pytest.raises(InputError, match="restored from a backup"):
        place.ask(made["Ada"])
    with pytest.MonkeyPatch.context() as patch:
        # As a server that runs already.
        patch.setattr(issuer_app.issue, "require_original", lambda _session: None)
        app = issuer_at(place.url)
    for words in (("invite", "habits", "--count", "1", "--out", "more.csv"), ("tickets", "key", "other")):
        with pytest.raises(TransferError, match="restored from a backup"):
            operate(app, *words)
    app.extensions["ldpkit"].close()
    assert not os.path.exists("more.csv")
    place.resume("keep")
    assert place.counts() == [(3, 0)]
    assert place.ask(made["Bo"]) == 200


def unnamed(place, out, *more):
    place.run("invite", "habits", "--count", "2", "--out", out, *more)
    with open(out, newline="") as file:
        return [row["ticket"] for row in csv.DictReader(file)]


def test_new_unnamed_codes_end_earlier_ones(small, capsys):
    """For a second version each person gets another code; an unused first code would give a second token."""
    first = unnamed(small, "first.csv")
    small.invite("named.csv")
    second = unnamed(small, "second.csv", "--again", "unused")
    assert "2 tickets of people without names ended" in capsys.readouterr().err
    assert [small.ask(code) for code in (*first, *second)] == [401, 401, 200, 200]
    # Those with names are others.
    assert small.counts() == [(5, 2)]
    with pytest.raises(TransferError, match="2 tickets of people without names got a token"):
        unnamed(small, "third.csv", "--again", "unused")
    assert small.counts() == [(5, 2)]
    third = unnamed(small, "third.csv", "--again", "all")
    assert [small.ask(code) for code in third] == [200, 200]


def test_replacing_codes_keeps_codes_of_other_stratum(small):
    """No codes end either when the stratum is misspelt and has no key."""
    for region in ("north", "south"):
        small.run("tickets", "key", "panel", "--public", f"region={region}")
    command = ("invite", "panel", "--count", "2", "--public")
    for region in ("north", "south"):
        small.run(*command, f"region={region}", "--out", f"{region}.csv")
    with pytest.raises(TransferError, match="no key for region=noth"):
        small.run(*command, "region=noth", "--again", "unused", "--out", "noth.csv")
    small.run(*command, "region=north", "--again", "unused", "--out", "again.csv")
    assert small.counts("panel") == [(2, 0), (2, 0)]


@pytest.mark.attack(4)
@pytest.mark.parametrize("name", ["Anna ", "Anna\u00a0", "Zoe\u0308"])
def test_one_person_by_two_spellings_gets_one_code(small, name):
    """A spreadsheet adds a blank to a name, or spells an accent otherwise."""
    small.name("people.csv", ["Anna", "Zo\u00eb"])
    small.invite("first.csv")
    small.name("people.csv", [name])
    with pytest.raises(TransferError, match="has a ticket already"):
        small.invite("second.csv")


@pytest.mark.parametrize(
    ("text", "code", "fact"),
    [
        ("name\n  \n", "ticket.incomplete_name_line", "2"),
        ("name,name\nCarl,Dora\n", "ticket.wrong_name_columns", "people.csv"),
        ("name\n\n", "ticket.no_names", "people.csv"),
    ],
)
def test_list_that_names_nobody_clearly_is_rejected(small, text, code, fact):
    Path("people.csv").write_text(text)
    with raises(InputError, code, fact):
        small.invite("second.csv")
