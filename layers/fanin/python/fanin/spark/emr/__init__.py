"""EMR Serverless: the package as a zip, and runs of the jobs."""
