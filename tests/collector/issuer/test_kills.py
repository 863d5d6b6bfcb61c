"""kill -9 at every statement: no token is spent without its report, none twice, and none is given twice."""

import os
import signal
from datetime import timedelta
from functools import partial

import pytest
from sqlalchemy import event

from collector import store
from collector.db import Database
from collector.issuer.app import answer
from collector.issuer.issue import Person
from collector.problems import ProblemError
from collector.reports import intake
from collector.reports.rules import RuleBook
from collector.reports.writer import Upload
from collector.tickets.codes import SPENT
from ldp_client.core.tokens import header_of
from tests.kit.collectors import TODAY, ensure_database
from tests.kit.connections import before_each
from tests.kit.issuing import Office, invited
from tests.ldp_client.issuers import channel_of, token_of

AT_MOST = 60


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


def kill_everywhere(work, settle):
    """Kill a process of its own at the work's 1st, 2nd, … statement until none is left."""
    for kills in range(AT_MOST):
        child = os.fork()
        if not child:
            try:
                work(kills + 1)
            finally:
                os._exit(0)
        if not os.WIFSIGNALED(os.waitpid(child, 0)[1]):
            break
        settle()
    assert 4 < kills < AT_MOST - 1


@pytest.mark.slow
@pytest.mark.attack(10)
def test_killed_collector_spends_no_token_without_report(database_url, make_harness, make_study, make_report):
    """The collector is killed at any statement, and devices send again."""
    study = make_study(channel=channel_of("https://issuer.example"))
    harness = make_harness(database=ensure_database(database_url))
    assert harness.publish(study).status_code == 201
    harness.collector.close()
    rules, works, nonces = intake.Rules.of(study), [], {}

    def make_uploads():
        """Three reports, two of them with one token."""
        token, works[:] = token_of(study), []
        for carried in (token, token, token_of(study)):
            report = rules.pack(make_report(study))
            packed, nonce = intake.checked(rules, report, None, header_of(carried), None)
            nonces[packed.id] = nonce
            works.append(Upload("habits", [packed], nonce))

    def commit(statement):
        database = Database(database_url, 5)
        book = RuleBook(database)
        book.find("habits", 1)
        if statement:
            die_at(database.engine, statement)
        find = partial(book.find, reserved=True)
        outcomes = intake.Intake(database, find, lambda: TODAY, timedelta(7), b"").store(works)
        database.engine.dispose()
        return [outcome for (outcome,) in outcomes]

    def check():
        database = Database(database_url, 5)
        with database.read() as session:
            number = store.study_state(session, "habits").number
            held = store.held_reports(session, number, list(nonces))
            spent = [nonce for _, nonce in session.execute(SPENT.select())]
        database.engine.dispose()
        assert sorted(nonces[report_id] for report_id in held) == sorted(spent)
        assert len(set(spent)) == len(spent)

    def settle():
        """Check that the killed server left consistent data; the devices send again."""
        check()
        outcomes = commit(0)
        good = (intake.Receipt.STORED, intake.Receipt.DUPLICATE)
        assert [outcome in good for outcome in outcomes] == [True, False, True]
        assert outcomes[1].kind.name == "ticket-spent"
        check()
        make_uploads()

    make_uploads()
    kill_everywhere(commit, settle)


def given(url, code, body, statement=0):
    """Return the issuer's answer, or the name of the problem."""
    database = Database(url, 5)
    if statement:
        die_at(database.engine, statement)
    try:
        return answer(lambda _key, change: database.act(change), code, body)
    except ProblemError as problem:
        return problem.kind.name
    finally:
        database.engine.dispose()


@pytest.mark.slow
@pytest.mark.attack(4)
def test_killed_issuer_gives_a_code_one_token(database_url):
    """The issuer is killed while it answers, and two holders of one code ask again."""
    office = Office(database_url)
    with office.writing() as session:
        codes = invited(session, "habits", [Person("", {"region": "north"})] * AT_MOST)
    asked = []

    def ask(statement):
        given(database_url, codes[-1], asked[-1].body, statement)

    def settle():
        """The device, or another holder of the code, asks again: one of the two gets a token."""
        other = office.asking()
        bodies = [asked[-1], other] if len(codes) % 2 else [other, asked[-1]]
        answers = [given(database_url, codes[-1], one.body) for one in bodies]
        assert sorted(isinstance(each, bytes) for each in answers) == [False, True]
        assert "ticket-spent" in answers
        for one, each in zip(bodies, answers):
            if isinstance(each, bytes):
                assert one.token(each, os.urandom)
                assert given(database_url, codes[-1], one.body) == each
        codes.pop()
        asked.append(office.asking())

    asked.append(office.asking())
    kill_everywhere(ask, settle)
