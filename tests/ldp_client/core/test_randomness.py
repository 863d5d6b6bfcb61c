"""Only the system's generator makes a report, unless a test or a simulation says that it passes another.

The promise about the system's generator tries unfit sources through every way in.
"""

import pytest

from ldp_client.bulk import perturb_many
from ldp_client.core.randomness import NotForRealAnswers, uniform_below
from ldp_client.documents.errors import RandomnessError
from tests import studies
from tests.statistics import seeded


@pytest.mark.attack(3)
def test_broken_random_source_makes_no_report():
    """Have an app pass a source that is broken, or whose bytes can be predicted."""
    sound, hours = seeded("sound").source, studies.mechanism_of(studies.NUMBER)
    for broken in (
        sound,
        NotForRealAnswers(lambda size: sound(size + 1)),
        NotForRealAnswers(lambda size: "x" * size),
        NotForRealAnswers(lambda size: list(sound(size))),
    ):
        with pytest.raises(RandomnessError):
            hours.perturb(3, broken)
        with pytest.raises(RandomnessError):
            perturb_many(hours, [3] * 3, broken)


def test_uniform_integers_are_drawn_again_beyond_the_last_whole_round():
    """2**32 is 1 more than a multiple of 3: the last word would make 0 too likely."""
    words = iter([b"\xff\xff\xff\xff", b"\xff\xff\xff\xfe"])
    assert uniform_below(3, NotForRealAnswers(lambda _size: next(words))) == 2
