"""Makes tests/support.py importable, whatever directory pytest starts in."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
