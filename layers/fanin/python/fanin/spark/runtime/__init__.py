"""What all jobs stand on: the session, the stack as tasks reach it, formats, files, rejects."""
