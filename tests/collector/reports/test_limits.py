"""The rates that limit uploads: bursts, debts, and the shares of studies."""

from collector.limiter import BURST_SECONDS, DEBT_SECONDS, TokenBucket
from collector.problems import ProblemError
from collector.reports.limits import UploadLimits
from tests.kit.errors import raises


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def stored(bucket, reports):
    """0 once they are let in and stored; else the seconds to wait."""
    seconds = bucket.let_in(reports)
    if not seconds:
        bucket.take(reports)
    return seconds


def test_a_bucket_holds_a_burst_and_refills():
    clock = Clock()
    bucket = TokenBucket(2.0, clock)
    burst = int(2 * BURST_SECONDS)
    assert [stored(bucket, 1) for _ in range(burst)] == [0.0] * burst
    assert stored(bucket, 1) == 0.5
    clock.now = 0.5
    assert stored(bucket, 1) == 0.0
    clock.now = 1e6
    assert [stored(bucket, 1) for _ in range(burst + 1)] == [0.0] * burst + [0.5]


def test_batch_above_the_burst_passes_and_leaves_a_debt():
    bucket = TokenBucket(5.0, Clock())
    # Uploads that are not stored use nothing up.
    assert [bucket.let_in(70_000) for _ in range(3)] == [0.0] * 3
    assert stored(bucket, 70_000) == 0.0
    assert stored(bucket, 1) == DEBT_SECONDS + 0.2
    assert stored(bucket, 70_000) == DEBT_SECONDS + BURST_SECONDS


def test_one_study_cannot_use_up_anothers_rate():
    limits = UploadLimits(1.0, Clock())
    limits.let_in("a", 10)
    limits.take("a", 10)
    with raises(ProblemError, "too-many-reports") as caught:
        limits.let_in("a")
    assert caught.value.answer()[1]["Retry-After"] == "1"
    limits.let_in("b", 10)


def test_an_upload_above_the_rate_is_429(make_harness, study, make_report):
    harness = make_harness(upload_rate=0.001)
    harness.publish(study)
    reports = [make_report(study) for _ in range(2)]
    assert harness.put(reports[0]).status_code == 201
    response = harness.put(reports[1])
    assert response.status_code == 429
    assert response.get_json(force=True)["type"] == "urn:ldpkit:problem:too-many-reports"
    assert int(response.headers["Retry-After"]) > 0
    # Without a look at it.
    assert harness.post([]).status_code == 429
