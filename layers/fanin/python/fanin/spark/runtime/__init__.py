"""What all jobs use: the session, the stack as tasks reach it, files, rejects, and what failures say."""
