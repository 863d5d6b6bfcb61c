"""Each choice mechanism is the law that it states: P(report | x) = c·e^ε where S has x, else c."""

import os
from itertools import product

import numpy as np
import pytest

from ldp_client.core.randomness import NotForRealAnswers
from ldp_client.documents.errors import StudyError
from ldp_client.mechanisms import olh
from tests import studies
from tests.kit.errors import raises
from tests.kit.work import instructions


def mechanism(name, choices, epsilon="1"):
    choices = {"count": choices} if isinstance(choices, int) else choices
    stated = {"name": name, "epsilon": epsilon}
    return studies.mechanism_of(studies.CHOICE, choices=choices, mechanism=stated)


def sylvester(width):
    matrix = np.ones((1, 1), dtype=int)
    while len(matrix) < width:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return matrix


@pytest.mark.parametrize(("epsilon", "blocks", "width"), [("0.5", 1, 32), ("2.5", 8, 4)])
def test_hadamard_columns_match_sylvesters_matrix(epsilon, blocks, width):
    """Blocks as Acharya, Sun & Zhang 2019: B the largest power of two below min(e^ε, 2k), b ≥ k/B + 1."""
    m = mechanism("hadamard", 20, epsilon)
    assert (m.blocks, m.width) == (blocks, width)
    matrix = sylvester(width)
    for index, column in product(range(20), range(blocks * width)):
        block, row = index // (width - 1), index % (width - 1) + 1
        expected = column // width == block and matrix[row, column % width] == 1
        assert m.supported(column.to_bytes(m.payload_size, "big"), index) == expected


def test_hash_coefficients_are_drawn_below_the_prime():
    """The one word that is not below it is drawn again."""
    m = mechanism("olh", 100)
    drawn = [b"\xff\xff\xff\xff", b"\x00\x00\x00\x03", b"\x00\x00\x00\x04", b"\x00\x00\x00\x06"]
    stream = iter([*drawn, bytes(4), bytes(4)])
    payload = m.perturb(9, NotForRealAnswers(lambda _size: next(stream)))
    assert payload == bytes([0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, (81 + 2 * 9 + 3) % m.hashes])


def test_the_hashes_of_any_three_choices_are_independent(monkeypatch):
    """This includes arithmetic progressions, whose third value follows from a line through two."""
    monkeypatch.setattr(olh, "PRIME", 13)
    m = mechanism("olh", 13)
    m.hashes = 13
    values = [tuple(m.hash(seed, index) for index in (1, 4, 7)) for seed in product(range(13), repeat=3)]
    assert len(set(values)) == 13**3


def test_a_bit_for_each_of_very_many_choices_is_refused_with_advice():
    with raises(StudyError, "study.too_many_choices", "'olh'", field="questions[0].mechanism.name"):
        mechanism("sue", 65_537)


def test_every_label_is_found_in_the_same_number_of_steps():
    """An observer of the time of a report would learn where among many labels the answer stands."""

    def steps(m, answer):
        with instructions() as clock:
            m.quantise(answer)
        return clock.count

    labels = ["a", "a" * 200, "a" * 199 + "b", "𝄞" * 200, *[f"label {number:05}" for number in range(5000)]]
    m = mechanism("randomized_response", labels)
    places = [0, 1, 2, 3, 4, 2047, 2048, 4095, 4096, 5002, 5003]
    assert [m.quantise(labels[place]) for place in places] == places
    assert len({steps(m, labels[place]) for place in places}) == 1
    numbered = mechanism("olh", 1_000_000)
    for answer in (0, "0", 999_999, "999999", "007"):
        assert numbered.quantise(answer) == int(answer)
    assert numbered.payload_size <= 16
    assert len({steps(numbered, text) for text in ("7", "42", "999999", "0000000")}) == 1


@pytest.mark.parametrize("name", ["oue", "sue", "subset_selection"])
def test_no_integer_is_shifted_by_the_place_of_the_answer(name):
    """Python takes longer to calculate with integers shifted by a large number of bits."""
    shifts = [0]

    class Place(int):
        def __rlshift__(self, value):
            shifts.append(int(self))
            return value << int(self)

    mechanism(name, 10_000).randomise(Place(9999), os.urandom)
    assert max(shifts) < 8
