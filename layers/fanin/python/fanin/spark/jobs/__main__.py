"""Any job by its name: ``python -m fanin.spark.jobs audit …``, and the script that a spark-submit starts."""

from __future__ import annotations

import sys
from importlib import import_module

from fanin.spark.jobs import JobName
from fanin.spark.jobs.running import USAGE, Job


def main(arguments: list[str]) -> int:
    """Run the job that the first argument names, with the others.

    Returns:
        The job's exit code.
    """
    if not arguments or arguments[0] not in set(JobName):
        print(f"say which job: {', '.join(JobName)}; each has a --help", file=sys.stderr)
        return USAGE
    job: Job = import_module(f"fanin.spark.jobs.{arguments[0].replace('-', '_')}").JOB
    return job.main(arguments[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
