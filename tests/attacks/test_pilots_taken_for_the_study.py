"""Take a gateway's answers to a pilot for answers to the same study at the real collector: it gets no report.

Defence: The device: a study is its collector's origin and its id, so each collector gets a report of its own.
"""

from schemas import Study
from tests import studies
from tests.ldp_client.devices import Server
from tests.portable.embedding_guide import code

STUDY = Study(studies.document(studies.YES_NO))


def test_gateway_answers_the_study_of_each_collector_once(tmp_path):
    names = {"FOLDER": str(tmp_path)}
    exec(code("python", "answer_for"), names)

    def answer_at(server):
        names["COLLECTOR"] = server.url
        assert names["answer_for"]("ann", STUDY, {"ever": True})
        return len(server.asked("PUT"))

    with Server(STUDY.canonical()) as pilot, Server(STUDY.canonical()) as real:
        assert [answer_at(server) for server in (pilot, pilot, real, real)] == [1, 1, 1, 1]
