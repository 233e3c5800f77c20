"""Makes the program of the nodes, which has no package of its own here, something that can be imported."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "userdata/trainium_userdata/node"))
