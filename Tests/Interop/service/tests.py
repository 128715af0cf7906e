"""tests.py KAPE DOCUMENT FOLDER: all tests of the backend as a process, one after the other on one state folder."""
import sys

import contract  # noqa: F401  (each adds its tests, in this order)
import peers  # noqa: F401
import crashes  # noqa: F401
import hostile  # noqa: F401
from harness import run
from world import World

world = World(*sys.argv[1:])
try:
    run(world)
finally:
    world.stop()
