"""What IAM would be asked on AWS in a session of tests, and what it would answer.

The emulator enforces the local template, and evaluates fewer condition keys than AWS. Here the same calls are
played against the policies of the template for AWS.
"""

import json
import os
from pathlib import Path

from tests.e2e import recording_launcher
from tests.infra.iam.recorded import Question, denied, in_names_of_aws, merged, written

LAUNCHER = Path(recording_launcher.__file__)
KEEP = "FANIN_CALLS"
"""Environment variable: folder to which recordings are copied, see ``tests/infra/iam/__main__.py``."""


class Recording:
    """The questions of one session, of all its emulators.

    Args:
        folder: folder of the session's temporary files.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def questions(self) -> list[Question]:
        """All questions, in the names of the template for AWS."""
        files = self._folder.rglob(recording_launcher.CALLS)
        lines = (line for file in files for line in file.read_text().splitlines())
        return merged(in_names_of_aws(*json.loads(line)) for line in lines)

    def denied(self) -> list[str]:
        """The questions that AWS would deny."""
        return denied(self.questions())

    def refused(self) -> set[str]:
        """Roles and actions that the emulator denied."""
        files = self._folder.rglob(recording_launcher.DENIALS)
        return {line for file in files for line in file.read_text().splitlines()}

    def keep(self) -> None:
        """Copy the questions to the folder that the environment names, if it names one."""
        if folder := os.environ.get(KEEP):
            Path(folder).mkdir(parents=True, exist_ok=True)
            (Path(folder) / f"{os.getpid()}.json").write_text(written(self.questions()))
