"""Runs any job by its name: ``python -m fanin.spark.jobs audit …``; also the script for spark-submit."""

import sys
from importlib import import_module

from fanin.spark.jobs import JOBS
from fanin.spark.jobs.running import USAGE, Job


def main(arguments: list[str]) -> int:
    """Run the job that the first argument names, with the others, and give its exit code."""
    if not arguments or arguments[0] not in JOBS:
        print(f"say which job: {', '.join(JOBS)}; each has a --help", file=sys.stderr)
        return USAGE
    return job(arguments[0]).main(arguments[1:])


def job(name: str) -> Job:
    """Import the job of a name. Only this job is imported, since each needs other parts of the package."""
    found: Job = import_module(f"fanin.spark.jobs.{name.replace('-', '_')}").JOB
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
