"""Random walks over the real scripts, held against the model: see `sequencer_walk`."""

import pytest

from tests.property.sequencer_walk import Walk
from tests.servers.sequencing import Sequencing


@pytest.mark.parametrize("seed", range(40))
async def test_the_scripts_do_what_the_protocol_says(fresh: Sequencing, seed: int) -> None:
    await Walk(seed, fresh).run()
