"""Renews ``recorded.json``: ``python -m tests.infra.iam FOLDER``, after tests with ``FANIN_CALLS=FOLDER``."""

import sys
from pathlib import Path

from tests.infra.iam.recorded import FILE, merged, read, written

questions = merged(one for file in Path(sys.argv[1]).glob("*.json") for one in read(file))
FILE.write_text(written(questions))
