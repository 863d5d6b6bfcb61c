"""No person gets an unintended second token: by another name, during `invite --again`, or after a restore."""

import os
import signal
from contextlib import ExitStack, closing
from copy import copy
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import event, text

from collector.clock import utc_today
from collector.daily import Days
from collector.db import Database, sqlite_file
from collector.issuer import app as issuer_app
from collector.issuer import issue
from collector.issuer.issue import Person
from collector.problems import ProblemError
from ldp_client.documents.errors import EXIT_REFUSED, InputError, TransferError
from tests.kit.connections import before_each
from tests.kit.errors import raises
from tests.kit.issuing import Office, invited, issuer_at
from tests.kit.operators import run_on

PEOPLE = ("Ada", "Bo", "Cy")
TWO = ("--count", "2")


def write_names(path, names):
    Path(path).write_text("".join(f"{name}\n" for name in ("name", *names)))


def resume(place, which):
    run_on(place.url, "tickets", "resume", "--unused", which)


@pytest.fixture
def make_place(tmp_path, monkeypatch):
    """Makes an issuer with one key and a list of people, on a database."""
    monkeypatch.chdir(tmp_path)
    write_names("people.csv", PEOPLE)
    with ExitStack() as made:
        yield lambda url: made.enter_context(closing(Office(url, [{}], [])))


@pytest.fixture
def place(make_place, tmp_path):
    return make_place(f"sqlite:///{tmp_path / 'issuer.sqlite3'}")


@pytest.fixture
def put_back(place):
    """Backs an issuer up, lets something happen, and restores the copy in its place."""

    def put_back(meanwhile=lambda: None):
        run_on(place.url, "backup", "--out", "copy")
        meanwhile()
        place.close()
        run_on(place.url, "restore", "copy")
        os.unlink("copy")

    return put_back


@pytest.mark.attack(4)
def test_request_during_code_replacement_gives_no_second_token(make_place, postgresql, monkeypatch):
    """A person asks with the earlier code, in the moment after it was seen to be unused."""
    place = make_place(postgresql.new_database())
    # Another process of the issuer.
    another = copy(place)
    first = place.invite("first.csv")
    plain, asked = issue.end_unused, []

    def end_unused(*arguments):
        asked.append(another.status(first["Ada"]))
        return plain(*arguments)

    monkeypatch.setattr(issue, "end_unused", end_unused)
    with pytest.raises(TransferError, match="Ada got a token already"):
        place.invite("second.csv", "--again", "unused")
    assert asked == [200]
    assert not os.path.exists("second.csv")
    # Nothing was changed for the others.
    assert place.status(first["Bo"]) == 200
    assert place.counts() == [(3, 2)]
    another.close()


@pytest.mark.attack(4)
def test_no_second_token_by_default_after_restored_backup(place, put_back, capsys):
    """A person who got a token after the backup asks again once it is restored."""
    made = place.invite("codes.csv")
    place.status(made["Cy"])
    put_back(lambda: place.status(made["Ada"]))
    resume(place, "end")
    said = capsys.readouterr().err
    assert "2 unused tickets ended" in said
    assert "--again all" in said
    for more, why in (((), "has a ticket already"), (("--again", "unused"), "Ada may have got a token")):
        with pytest.raises(TransferError, match=why):
            place.invite("again.csv", *more)
    assert [place.status(made[name]) for name in ("Ada", "Bo")] == [409, 409]
    place.run("tickets", "status", "habits")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "everybody: 1 of 1 ticket got a token; 2 more ended as a backup was put back"
    assert lines[1:] == ["  Ada: may have a token", "  Bo: may have a token", "  Cy: has a token"]
    write_names("some.csv", ["Bo"])
    again = place.invite("again.csv", "--again", "all", names="some.csv")
    assert place.status(again["Bo"]) == 200
    # Of a second backup too: what is known stays known.
    put_back()
    resume(place, "end")
    write_names("some.csv", ["Ada"])
    with pytest.raises(TransferError, match="Ada may have got a token"):
        place.invite("more.csv", "--again", "unused", names="some.csv")


@pytest.mark.attack(4)
def test_running_issuer_gives_no_token_from_copy(place, put_back):
    """A copy, which does not know who got a token since, is put under a running issuer."""
    made = place.invite("codes.csv")
    # Without need, all unused tickets of all studies would end.
    with raises(InputError, "issuer.not_restored") as refused:
        resume(place, "end")
    assert refused.value.exit_code == EXIT_REFUSED
    put_back(lambda: place.status(made["Ada"]))
    with pytest.raises(InputError, match="restored from a backup"):
        place.status(made["Ada"])
    with pytest.MonkeyPatch.context() as patch:
        # As a server that runs already.
        patch.setattr(issuer_app.issue, "require_original", lambda _session: None)
        assert place.app
    asked = place.ask(place.asking().body, made["Ada"])
    assert asked.status_code == 503
    assert "restored from a backup" in asked.get_json(force=True)["detail"]
    for words in (("invite", "habits", "--count", "1", "--out", "more.csv"), ("tickets", "key", "other")):
        with pytest.raises(TransferError, match="restored from a backup"):
            place.run(*words)
    assert not os.path.exists("more.csv")
    resume(place, "keep")
    assert place.counts() == [(3, 0)]
    assert place.status(made["Bo"]) == 200


def test_new_unnamed_codes_end_earlier_ones(place, capsys):
    """For a second version each person gets another code; an unused first code would give a second token."""
    first = place.invite("first.csv", *TWO, names=None)
    place.invite("named.csv")
    second = place.invite("second.csv", *TWO, "--again", "unused", names=None)
    assert "2 tickets of people without names ended" in capsys.readouterr().err
    assert [place.status(code) for code in (*first, *second)] == [401, 401, 200, 200]
    # Those with names are others.
    assert place.counts() == [(5, 2)]
    with pytest.raises(TransferError, match="2 tickets of people without names got a token"):
        place.invite("third.csv", *TWO, "--again", "unused", names=None)
    assert place.counts() == [(5, 2)]
    third = place.invite("third.csv", *TWO, "--again", "all", names=None)
    assert [place.status(code) for code in third] == [200, 200]


NAMES = [f"Person number {number:02}" for number in range(12)]


def places_of_names(office):
    """The people by their place in the files, and how many transactions wrote them."""
    file = sqlite_file(office.url)
    if file is not None:
        content = file.read_bytes()
        return sorted(NAMES, key=lambda name: content.rindex(name.encode())), 1
    with office.writing() as session:
        rows = session.execute(text("SELECT name, xmin FROM tickets ORDER BY ctid")).all()
    return [row.name for row in rows], len({row.xmin for row in rows})


@pytest.mark.attack(12)
def test_next_day_removes_the_order_of_requests(database_url):
    """Someone reads in an issuer's database in which order named people asked, also of a killed issuer."""
    office = Office(database_url, [{}], [Person(name, {}) for name in NAMES])
    assert {office.status(code) for code in office.codes} == {200}
    office.close()
    with office.writing() as session:
        hashed = list(session.scalars(text("SELECT name FROM tickets ORDER BY hash")))
    # SQLite fills a page from its end.
    expected = (hashed[::-1] if sqlite_file(office.url) else hashed), 1
    assert places_of_names(office) != expected
    app = issuer_at(office.url, today=lambda: utc_today() + timedelta(1))
    Days(app.extensions["ldpkit"]).look()
    app.extensions["ldpkit"].close()
    assert places_of_names(office) == expected
    assert office.counts() == [(len(NAMES), len(NAMES))]


def die_at(engine, statement):
    """Kill this process at its n-th statement; a commit counts as one before it, and one after."""
    seen = [0]

    def count(*_):
        seen[0] += 1
        if seen[0] == statement:
            os.kill(os.getpid(), signal.SIGKILL)

    before_each(engine, count)
    event.listen(engine, "commit", count)
    plain = engine.dialect.do_commit

    def commit(connection):
        plain(connection)
        count()

    engine.dialect.do_commit = commit


AT_MOST = 60


@pytest.mark.slow
@pytest.mark.attack(4)
def test_killed_issuer_gives_a_code_one_token(database_url):
    """The issuer is killed at each statement of its answer, and two holders of one code ask again."""
    office = Office(database_url)
    with office.writing() as session:
        codes = invited(session, "habits", [Person("", {"region": "north"})] * AT_MOST)

    def given(code, body, statement=0):
        """Return the issuer's answer, or the name of the problem."""
        database = Database(database_url, 5)
        if statement:
            die_at(database.engine, statement)
        try:
            return issuer_app.answer(lambda _key, change: database.act(change), code, body)
        except ProblemError as problem:
            return problem.kind.name
        finally:
            database.engine.dispose()

    for kills, code in enumerate(codes):
        asked, other = office.asking(), office.asking()
        child = os.fork()
        if not child:
            try:
                given(code, asked.body, kills + 1)
            finally:
                os._exit(0)
        if not os.WIFSIGNALED(os.waitpid(child, 0)[1]):
            break
        # The device, or another holder of the code, asks again: one of the two gets a token.
        bodies = [asked, other] if kills % 2 else [other, asked]
        answers = {given(code, one.body): one for one in bodies}
        assert "ticket-spent" in answers
        (token,) = answers.keys() - {"ticket-spent"}
        assert answers[token].token(token, os.urandom)
        assert given(code, answers[token].body) == token
    assert 4 < kills < AT_MOST - 1
