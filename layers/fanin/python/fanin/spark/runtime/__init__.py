"""What all jobs use: the session, the stack as tasks reach it, formats, files and rejects."""
