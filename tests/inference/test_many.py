"""Many fits: numbered tasks give the same here and on a cluster, and go on where they were interrupted."""

import json
import sys
from functools import partial

import numpy as np
import pytest

from inference.design import calibration, cluster, cluster_cli, many
from inference.design.calibration import calibrate, generator_of
from inference.design.cluster import place_of
from inference.design.journal import Journal
from inference.design.many import Many, Work, plain
from inference.design.simulated_posteriors import batches_of
from inference.limits import FEWEST_STUDIES
from ldp_client.cli import main
from ldp_client.documents.errors import InputError, MissingExtraError, TransferError, UsageError
from schemas import Study
from summaries.engines import clusters
from tests import studies
from tests.inference.sums import Sums, died
from tests.kit.errors import raises

STUDY = Study(studies.document(studies.YES_NO))


@pytest.fixture(scope="module")
def processes():
    with place_of("local:2") as place:
        yield place


def work_of(*given, items=9, size=1):
    return Work(partial(Sums, *given), items, "{} of nine", size)


def test_a_cluster_gives_what_this_process_gives(processes):
    works = [work_of(1), work_of(2, items=4)]
    told = []
    here = Many().run(works, told.append)
    assert Many(processes).run(works) == here
    assert [len(parts) for parts in here] == [9, 4]
    assert here[0][:4] != here[1]
    assert told[0] == "0 of nine"
    shares = [line.share for line in told]
    assert shares == sorted(shares)
    assert shares[-1] == 1


def test_a_worker_that_is_killed_changes_nothing(processes, tmp_path):
    marker = str(tmp_path / "marker")
    found = Many(processes).run([work_of(1, 4, marker)])
    assert died(marker)
    assert found == Many().run([work_of(1)])


def test_a_worker_with_another_version_is_refused(processes, monkeypatch):
    monkeypatch.setattr(cluster, "versions", lambda: ["0.0.7", *many.versions()[1:]])
    with raises(InputError, "engine.versions_differ", "tcp", "ldpkit 0.1.0", "0.0.7"):
        cluster.Dask(processes._client, "tcp://there", print)
    # One that came later says its own.
    with raises(InputError, "engine.versions_differ", "tcp", "ldpkit 0.1.0", "0.0.7"):
        Many(processes).run([work_of(3)])


@pytest.mark.slow
def test_a_calibration_on_a_cluster_has_the_same_numbers(processes, tmp_path, monkeypatch):
    journal, given = Journal(tmp_path / "kept"), (STUDY.questions[0], FEWEST_STUDIES, 200, 3)
    here = calibrate(*given)
    assert calibrate(*given, many=Many(processes, journal)).to_document() == here.to_document()
    (line,) = journal.path.read_text().splitlines()
    assert sorted(json.loads(line)["found"]["below"]) == ["p"]
    # All is known: nothing is simulated again.
    monkeypatch.setattr(calibration.Fits, "__init__", None)
    assert calibrate(*given, many=Many(journal=journal)).to_document() == here.to_document()


def test_an_interrupted_run_goes_on(tmp_path, monkeypatch):
    journal, done = Journal(tmp_path / "kept"), []

    class Interrupted(Sums):
        def __call__(self, number, tell):
            if len(done) == 5:
                done.clear()
                raise KeyboardInterrupt
            done.append(number)
            return super().__call__(number, tell)

    monkeypatch.setattr(sys.modules[__name__], "Sums", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        Many(journal=journal).run([work_of(1)])
    # The last line was cut off, as by a power failure.
    journal.path.write_bytes(journal.path.read_bytes()[:-9])
    told = []
    found = Many(journal=journal).run([work_of(1)], told.append)
    assert told[0].endswith("4 of 9 parts are known from an interrupted run")
    assert done == [4, 5, 6, 7, 8]
    assert len(journal.path.read_text().splitlines()) == 9
    monkeypatch.undo()
    assert found == Many().run([work_of(1)])
    journal.done()
    assert not journal.path.exists()


def test_a_journal_of_other_parameters_is_refused(tmp_path):
    journal = Journal(tmp_path / "kept")
    Many(journal=journal).run([work_of(1)])
    for other in (work_of(2), work_of(1, items=8), work_of(1, size=2)):
        with raises(InputError, "plan.journal_of_other_run"):
            Many(journal=journal).run([other])
    for text in ("[]\n", '{"format": "ldpkit.journal/1"}\n', "something else", "\xff\n"):
        journal.path.write_text(text, "latin-1")
        with raises(InputError, "plan.journal_invalid"):
            Many(journal=journal).run([work_of(1)])
    # Of a run that was killed before its first line was whole.
    journal.path.write_text('{"format": "ldpkit.jour')
    assert Many(journal=journal).run([work_of(1)]) == Many().run([work_of(1)])


def test_two_runs_into_one_place_at_once_are_one(tmp_path):
    """Lines of both stood in the file, and neither could go on."""
    path, told = tmp_path / "kept", "another run is writing"
    with cluster_cli.many_of(None, path) as first:
        first.run([work_of(1)])
        for seed in (1, 2):
            with pytest.raises(InputError, match=told), cluster_cli.many_of(None, path) as second:
                second.run([work_of(seed)])
    # One that ends otherwise keeps nobody away, and what it found stays.
    with cluster_cli.many_of(None, path) as third:
        third.run([work_of(1)])
        third.journal.done()
    assert not path.exists()
    with cluster_cli.many_of(None, path) as fourth:
        # Nothing is found yet.
        fourth.journal.read([])
    assert not path.exists()


@pytest.mark.parametrize(
    "address", ["", "local:0", "local:x", "local:", "http://there", "tcp://", "local:9999"]
)
def test_an_address_of_no_cluster_is_one_line(address):
    with raises(UsageError, "plan.wrong_cluster"), place_of(address):
        pass


def test_a_missing_extra_and_a_missing_scheduler_are_one_line(monkeypatch):
    monkeypatch.setattr(clusters, "PATIENCE", 0.5)
    with raises(TransferError, "engine.scheduler_unreachable", "tcp://127.0.0.1:9") as raised:
        place_of("tcp://127.0.0.1:9").__enter__()
    assert "\n" not in str(raised.value)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtraError, match=r"ldpkit\[dask\]"):
        place_of("local:2").__enter__()


def test_the_command_refuses_a_cluster_that_has_nothing_to_do(tmp_path, capsys):
    (tmp_path / "study.json").write_text(STUDY.to_json())
    command = ["plan", f"{tmp_path}/study.json", "--at-once", "--out", f"{tmp_path}/plan"]
    assert main([*command, "--cluster", "local:2"]) == 2
    assert "--at-once has none" in capsys.readouterr().err
    command = ["calibrate", f"{tmp_path}/study.json", "--question", "ever", "--out", f"{tmp_path}/out"]
    assert main([*command, "--cluster", "over there"]) == 2
    assert not (tmp_path / "out").exists()


def test_studies_and_parameters_are_told_apart():
    spawned = np.random.default_rng(7).spawn(3)
    assert [one.random() for one in spawned] == [generator_of(7, place).random() for place in range(3)]
    assert [list(places)[::49] for places in batches_of(101)] == [[0, 49], [50, 99], [100]]
    assert plain(STUDY.questions[0]) != plain(Study(studies.document(studies.AGE)).questions[0])
    assert plain({"a": (1, np.arange(2), range(3), plain)}) == {"a": [1, [0, 1], "range(0, 3)", "plain"]}
    assert work_of(1).digest == work_of(1).digest != work_of(1.5).digest
