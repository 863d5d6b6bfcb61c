"""Ask a panel the same question every week, at the privacy cost of one answer: for operators of panels.

Run: python examples/weekly_panel.py. A hundred devices answer in four weeks. The question is memoized: a
device draws one permanent noisy answer, and each week's report adds fresh noise to it. So four reports
together cost only the stated ε. Do not pool weeks: they come from the same people and the same permanent
answers. A person who begins to smoke is never seen: ask another question for that.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import ldpkit
from ldpkit import Device, Report, Study, ask

WEEKS, PEOPLE = 4, 100
MEMOIZED = {"name": "memoized", "of": "randomized_response", "instantaneous_epsilon": "1"}


def week(number: int) -> Study:
    """Build the study of one week: a version of the same question."""
    question = ask.yes_no("smokes", epsilon=2, mechanism=MEMOIZED, text="Do you smoke?")
    return ldpkit.study("panel", "A weekly panel", [question], version=number)


def answer_weekly(folder: Path) -> dict[int, list[Report]]:
    """Return each week's reports, from the same people."""
    reports: dict[int, list[Report]] = {number: [] for number in range(1, WEEKS + 1)}
    for person in range(PEOPLE):
        device = Device(folder / str(person), max_epsilon="2")
        for number in reports:
            study = week(number)
            device.consent(study)
            device.answer(study, {"smokes": person % 5 == 0})
        for queued in device.ledger.queued():
            report = Report.from_json(queued.body)
            reports[report.version].append(report)
    return reports


def main() -> int:
    """Print each week's estimate, and the budget that the whole panel leaves a person."""
    with TemporaryDirectory() as folder:
        reports = answer_weekly(Path(folder))
        left = Device(Path(folder) / "0", max_epsilon="2").epsilon_left
    for number, sent in reports.items():
        print(f"week {number}: {ldpkit.fit(week(number), sent)['smokes']}")
    print(f"left of each person's budget of 2, after {WEEKS} weeks: {float(left):.2f}")
    print(
        "More weeks add no certainty beyond that of the permanent answers, which spent the budget only once."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
