"""Random histories of one study against a model that is a dictionary, on SQLite and PostgreSQL."""

from datetime import timedelta
from itertools import count

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from collector.reports import paging as exporting
from collector.tickets.codes import disable, revoke
from ldpkit.cli.report_files import DatedReport
from summaries import Summary, summarize
from tests.kit.answers import fail_next_commit
from tests.kit.collectors import TICKET_KEY, TODAY, Harness, build_report, build_study, conflicting
from tests.kit.deleting import delete_reports

EXAMPLES = {"sqlite": 4, "postgresql": 5}
STEPS = 30
LATE = timedelta(days=7)
CLOSES = TODAY + timedelta(days=10)
PICK = st.integers(0, 10**6)
KIND = st.sampled_from(["none", "new", "used", "unknown"])
VERSIONS = {version: build_study(version, closes=CLOSES.isoformat()) for version in (1, 2, 3)}


class Histories(RuleBasedStateMachine):
    """held: {id: report} as it should be exported. days: of their arrival. gone: withdrawn ids.

    needs: whether reports need tickets. unused, used: those that are valid.
    """

    def __init__(self, database):
        super().__init__()
        self.database = database
        self.day = TODAY
        self.held, self.days, self.sent, self.gone = {}, {}, [], set()
        self.published, self.closed = [1], False
        self.needs, self.unused, self.used = False, [], []
        self.start()
        assert self.harness.publish(VERSIONS[1]).status_code == 201

    def start(self):
        self.harness = Harness(self.database, lock_timeout=5, ticket_key=TICKET_KEY)
        self.harness.day = self.day

    def teardown(self):
        self.harness.collector.close()

    @property
    def open(self):
        return not self.closed and self.day <= CLOSES + LATE

    def expected(self, report, ticket=None):
        """The status that an upload of this report deserves."""
        if report.id in self.gone:
            return 410
        if report.id in self.held:
            return 200 if self.held[report.id] == report else 409
        if not self.open:
            return 410
        if not self.needs or ticket in self.unused:
            return 201
        return 409 if ticket in self.used else 401

    def remember(self, report, ticket=None):
        if self.expected(report, ticket) == 201:
            self.held[report.id], self.days[report.id] = report, self.day
            if self.needs:
                self.unused.remove(ticket)
                self.used.append(ticket)

    def put(self, report, ticket):
        status, expected = self.harness.put(report, ticket).status_code, self.expected(report, ticket)
        # The daily job forgets used tickets once they are many.
        assert status == expected or (status, expected, ticket in self.used) == (401, 409, True)
        self.remember(report, ticket)

    def ticket(self, kind):
        """A ticket of a kind, if there is one."""
        return next(iter({"new": self.unused, "used": self.used, "unknown": ["unknown"]}.get(kind, [])), None)

    def fresh(self, pick):
        report = build_report(VERSIONS[self.published[pick % len(self.published)]])
        self.sent.append(report)
        return report

    @rule(version=st.integers(1, 3), change=st.booleans())
    def publish(self, version, change):
        is_later = version > self.published[-1]
        changes = {"title": "Another"} if change and not is_later else {}
        study = build_study(version, closes=CLOSES.isoformat(), **changes)
        expected = 409
        if version == self.published[-1]:
            expected = 409 if changes else 200
        elif is_later and not self.closed:
            expected = 201
            self.published.append(version)
        assert self.harness.publish(study).status_code == expected

    @rule(pick=PICK, kind=KIND)
    def upload(self, pick, kind):
        self.put(self.fresh(pick), self.ticket(kind))

    @precondition(lambda self: self.sent)
    @rule(pick=PICK, kind=KIND, change=st.booleans())
    def upload_again(self, pick, kind, change):
        report = self.sent[pick % len(self.sent)]
        self.put(conflicting(report) if change else report, self.ticket(kind))

    @rule(picks=st.lists(PICK, max_size=8))
    def upload_batch(self, picks):
        batch = [self.sent[p % len(self.sent)] if self.sent and p % 3 else self.fresh(p) for p in picks]
        statuses = []
        for report in batch:
            statuses.append(self.expected(report))
            self.remember(report)
        result = self.harness.post([report.to_document() for report in batch]).get_json()
        assert (result["stored"], result["duplicates"]) == (statuses.count(201), statuses.count(200))
        failed = [report.id for report, status in zip(batch, statuses, strict=True) if status >= 400]
        assert [entry["id"] for entry in result["failed"]] == failed

    @rule(pick=PICK, kind=KIND, commits=st.booleans())
    def upload_into_a_failure(self, pick, kind, commits):
        """Without the commit nothing is there, and no ticket used; else only the acknowledgement was lost."""
        report, ticket = self.fresh(pick), self.ticket(kind)
        fail_next_commit(self.harness, commits)
        assert self.harness.put(report, ticket).status_code == 503
        if commits:
            self.remember(report, ticket)
        self.put(report, ticket)

    @precondition(lambda self: self.sent)
    @rule(pick=PICK)
    def withdraw(self, pick):
        report_id = self.sent[pick % len(self.sent)].id
        known = report_id in self.held or report_id in self.gone
        assert self.harness.withdraw(report_id).status_code == (200 if known else 404)
        if self.held.pop(report_id, None):
            self.gone.add(report_id)

    @rule(pick=PICK, is_early=st.booleans())
    def withdraw_by_the_device(self, pick, is_early):
        """Also before the report arrives, so that it is refused when it comes."""
        report = self.fresh(pick) if is_early or not self.sent else self.sent[pick % len(self.sent)]
        assert self.harness.withdraw(report.id, secret=report.secret).status_code == 200
        self.held.pop(report.id, None)
        self.gone.add(report.id)

    @precondition(lambda self: len(self.sent) > 4)
    @rule(count=st.integers(1, 3))
    def invite(self, count):
        self.unused += self.harness.tickets(count)
        self.needs = True

    @precondition(lambda self: self.needs)
    @rule(change=st.sampled_from([revoke, disable]))
    def forget_tickets(self, change):
        self.harness.write(change, "habits", "ann")
        self.needs, self.unused, self.used = change is revoke, [], []

    @rule()
    def restart(self):
        self.harness.collector.close()
        self.start()

    @rule(days=st.integers(-3, 9))
    def jump(self, days):
        self.day += timedelta(days)
        self.harness.day = self.day

    @precondition(lambda self: len(self.sent) > 10)
    @rule()
    def close(self):
        assert self.harness.close().status_code == 200
        self.closed = True

    @precondition(lambda self: self.closed)
    @rule()
    def reopen(self):
        assert self.harness.reopen() == 200
        self.closed = False

    @precondition(lambda self: self.held)
    @rule(pick=PICK)
    def export_the_rest(self, pick):
        ids = sorted(self.held)
        after = ids[pick % len(ids)]
        assert [report.id for report in self.harness.exported(after=after)] == ids[pick % len(ids) + 1 :]

    @rule()
    def export_with_days(self):
        *lines, _ = self.harness.export(format="dated").data.splitlines()
        found = {report.id: report.day for report in map(DatedReport.from_line, lines)}
        assert found == {report_id: self.days[report_id].isoformat() for report_id in self.held}

    @rule(pick=PICK)
    def expire(self, pick):
        """Deletes reports except their ids, so that no copy is accepted."""
        before = self.day - timedelta(pick % 10)
        expired = [report_id for report_id in self.held if self.days[report_id] < before]
        deleted = delete_reports(self.harness.collector.database, "habits", before)
        assert deleted == len(expired)
        for report_id in expired:
            del self.held[report_id]
            self.gone.add(report_id)

    @invariant()
    def the_export_is_the_model(self):
        exported = self.harness.exported()
        assert exported == [self.held[report_id] for report_id in sorted(self.held)]

    @invariant()
    def the_summary_is_that_of_the_model(self):
        for version in self.published:
            reports = [report for report in self.held.values() if report.version == version]
            study = VERSIONS[version]
            expected = summarize(study, reports) if reports else Summary.empty(study)
            assert self.harness.summary(version=version).text == expected.to_json()


@pytest.fixture
def new_database(request, tmp_path):
    """Makes a new database for each history."""

    def make(kind):
        if kind == "postgresql":
            return request.getfixturevalue("postgresql").new_database()
        return f"sqlite:///{tmp_path / f'{next(numbers)}.sqlite3'}"

    numbers = count()
    return make


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def test_random_histories_match_the_model(kind, new_database, monkeypatch):
    monkeypatch.setattr(exporting, "PAGE_REPORTS", 3)
    run_state_machine_as_test(
        lambda: Histories(new_database(kind)),
        settings=settings(
            max_examples=EXAMPLES[kind],
            stateful_step_count=STEPS,
            phases=[Phase.generate],
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
