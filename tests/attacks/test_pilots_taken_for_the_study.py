"""Has a gateway that answered a pilot call the same study done with at the real collector, unsaid.

Defence: The device: refuses, and says in the error (`elsewhere`) that another publisher was answered; the
gateway's code in embedding.md prints it.
"""

from schemas import Study
from tests import studies
from tests.ldp_client.devices import Server
from tests.portable.embedding_guide import code

STUDY = Study(studies.document(studies.YES_NO))


def test_gateway_prints_that_pilot_got_the_answers(tmp_path, capsys):
    names = {"FOLDER": str(tmp_path)}
    exec(code("python", "answer_for"), names)

    def answer_at(server):
        names["COLLECTOR"] = server.url
        done = names["answer_for"]("ann", STUDY, {"ever": True})
        return done, capsys.readouterr().out

    with Server(STUDY.canonical()) as pilot, Server(STUDY.canonical()) as real:
        assert answer_at(pilot) == (True, "")
        assert answer_at(pilot) == (True, "")
        done, said = answer_at(real)
        assert f"this device has answered it before, to {pilot.url}" in said
        assert done
        assert answer_at(pilot) == (True, "")
