"""Random histories of one study against a model that is a dictionary, on SQLite and PostgreSQL."""

from datetime import timedelta
from itertools import count

import pytest
from hypothesis import HealthCheck, Phase, settings, stateful
from hypothesis import strategies as st

from collector.problems import KINDS
from collector.reports import paging
from collector.tickets.codes import disable, revoke
from ldpkit.cli.report_files import DatedReport
from schemas import Study
from summaries import Summary, summarize
from tests.kit.answers import AwayError, delete_reports
from tests.kit.collectors import TICKET_KEY, TODAY, Harness, build_study, conflicting, device_report

CLOSES = TODAY + timedelta(days=10)
PICK = st.integers(0, 10**6)
KIND = st.sampled_from(["none", "new", "used", "unknown"])
PUBLIC = [{"id": "age", "bounds": ["0", "2"], "step": "1"}, {"id": "region", "choices": ["north", "south"]}]
# The second one asks each device one question, the third one has public values, and so a summary by cell.
CHANGES = {1: {}, 2: {"sample_one_question": True}, 3: {"public": PUBLIC}}
VERSIONS = {n: build_study(n, closes=CLOSES.isoformat(), **changes) for n, changes in CHANGES.items()}


class Histories(stateful.RuleBasedStateMachine):
    """held: {id: report} as it should be exported. days: of their arrival. gone: withdrawn ids.

    needs: whether reports need tickets. unused, used: those that are valid.
    """

    def __init__(self, database):
        super().__init__()
        self.database = database
        self.day = TODAY
        self.held, self.days, self.sent, self.gone = {}, {}, [], set()
        self.published, self.closed = [1, 2], False
        self.needs, self.unused, self.used = False, [], []
        self.start()
        for version in self.published:
            assert self.harness.publish(VERSIONS[version]).status_code == 201

    def start(self):
        self.harness = Harness(self.database, lock_timeout=5, ticket_key=TICKET_KEY)
        self.harness.day = self.day

    def teardown(self):
        self.harness.collector.close()

    @property
    def open(self):
        # Reports are taken for a week after the last day.
        return not self.closed and self.day <= CLOSES + timedelta(days=7)

    def expected(self, report, ticket=None):
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

    def ticket(self, kind):
        return next(iter({"new": self.unused, "used": self.used, "unknown": ["unknown"]}.get(kind, [])), None)

    def put(self, report, ticket):
        status, expected = self.harness.put(report, ticket).status_code, self.expected(report, ticket)
        # The daily job forgets used tickets once they are many.
        assert status == expected or (status, expected, ticket in self.used) == (401, 409, True)
        self.remember(report, ticket)

    def report(self, pick, is_new=True):
        if self.sent and not is_new:
            return self.sent[pick % len(self.sent)]
        study = VERSIONS[self.published[pick % len(self.published)]]
        public = {"age": pick % 3, "region": ["north", "south"][pick % 2]} if study.public else {}
        report = device_report(study, **public)
        self.sent.append(report)
        return report

    @stateful.rule(version=st.integers(1, 3), change=st.booleans())
    def publish(self, version, change):
        is_later = version > self.published[-1]
        changes = {"title": "Another"} if change and not is_later else {}
        study = Study({**VERSIONS[version].document, **changes})
        expected = 409
        if version == self.published[-1]:
            expected = 409 if changes else 200
        elif is_later and not self.closed:
            expected = 201
            self.published.append(version)
        assert self.harness.publish(study).status_code == expected

    @stateful.rule(pick=PICK, kind=KIND, is_new=st.booleans(), change=st.booleans())
    def upload(self, pick, kind, is_new, change):
        report = self.report(pick, is_new)
        self.put(conflicting(report) if change and "ever" in report.payloads else report, self.ticket(kind))

    @stateful.rule(picks=st.lists(PICK, max_size=8))
    def upload_batch(self, picks):
        batch = [self.report(pick, is_new=pick % 3 == 0) for pick in picks]
        statuses = []
        for report in batch:
            statuses.append(self.expected(report))
            self.remember(report)
        result = self.harness.post([report.to_document() for report in batch]).get_json()
        assert (result["stored"], result["duplicates"]) == (statuses.count(201), statuses.count(200))
        refused = [(report.id, status) for report, status in zip(batch, statuses) if status >= 400]
        status_of = {kind.type: kind.status for kind in KINDS}
        assert [(entry["id"], status_of[entry["type"]]) for entry in result["failed"]] == refused

    @stateful.rule(pick=PICK, kind=KIND, commits=st.booleans())
    def upload_into_a_failure(self, pick, kind, commits):
        """Without the commit nothing is there, and no ticket used; else only the acknowledgement was lost."""
        report, ticket = self.report(pick), self.ticket(kind)
        writer, genuine = self.harness.collector.writer, self.harness.collector.writer._store

        def fail_once(uploads):
            writer._store = genuine
            if commits:
                genuine(uploads)
            raise AwayError

        writer._store = fail_once
        assert self.harness.put(report, ticket).status_code == 503
        if commits:
            self.remember(report, ticket)
        self.put(report, ticket)

    @stateful.rule(pick=PICK, is_early=st.booleans(), by_device=st.booleans())
    def withdraw(self, pick, is_early, by_device):
        """A device does so also before its report arrives, so that it is refused when it comes."""
        report = self.report(pick, is_early)
        known = by_device or report.id in self.held or report.id in self.gone
        secret = report.secret if by_device else b""
        assert self.harness.withdraw(report.id, secret=secret).status_code == (200 if known else 404)
        if self.held.pop(report.id, None) or by_device:
            self.gone.add(report.id)

    @stateful.precondition(lambda self: len(self.sent) > 4)
    @stateful.rule(count=st.integers(1, 3))
    def invite(self, count):
        self.unused += self.harness.tickets(count)
        self.needs = True

    @stateful.precondition(lambda self: self.needs)
    @stateful.rule(change=st.sampled_from([revoke, disable]))
    def forget_tickets(self, change):
        self.harness.write(change, "habits", "ann")
        self.needs, self.unused, self.used = change is revoke, [], []

    @stateful.rule()
    def restart(self):
        self.teardown()
        self.start()

    @stateful.rule(days=st.integers(-3, 9))
    def jump(self, days):
        self.day += timedelta(days)
        self.harness.day = self.day

    @stateful.precondition(lambda self: self.closed or len(self.sent) > 10)
    @stateful.rule()
    def close_or_reopen(self):
        assert (self.harness.reopen() if self.closed else self.harness.close().status_code) == 200
        self.closed = not self.closed

    @stateful.precondition(lambda self: self.held)
    @stateful.rule(pick=PICK)
    def export_the_rest_with_days(self, pick):
        ids = sorted(self.held)
        place = pick % len(ids)
        *lines, _ = self.harness.export(format="dated", after=ids[place]).data.splitlines()
        found = [(report.id, report.day) for report in map(DatedReport.from_line, lines)]
        assert found == [(report_id, self.days[report_id].isoformat()) for report_id in ids[place + 1 :]]

    @stateful.rule(pick=PICK)
    def expire(self, pick):
        """Deletes reports except their ids, so that no copy is accepted."""
        before = self.day - timedelta(pick % 10)
        expired = [report_id for report_id in self.held if self.days[report_id] < before]
        assert delete_reports(self.harness.collector.database, "habits", before) == len(expired)
        for report_id in expired:
            del self.held[report_id]
            self.gone.add(report_id)

    @stateful.invariant()
    def the_export_is_the_model(self):
        exported = self.harness.exported()
        assert exported == [self.held[report_id] for report_id in sorted(self.held)]

    @stateful.invariant()
    def the_summary_is_that_of_the_model(self):
        for version in self.published:
            reports = [report for report in self.held.values() if report.version == version]
            study = VERSIONS[version]
            expected = summarize(study, reports) if reports else Summary.empty(study)
            assert self.harness.summary(version=version).text == expected.to_json()


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def test_random_histories_match_the_model(kind, request, tmp_path, monkeypatch):
    monkeypatch.setattr(paging, "PAGE_REPORTS", 3)
    numbers = count()

    def new_database():
        if kind == "postgresql":
            return request.getfixturevalue("postgresql").new_database()
        return f"sqlite:///{tmp_path / f'{next(numbers)}.sqlite3'}"

    stateful.run_state_machine_as_test(
        lambda: Histories(new_database()),
        settings=settings(
            max_examples={"sqlite": 4, "postgresql": 5}[kind],
            stateful_step_count=30,
            phases=[Phase.generate],
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
