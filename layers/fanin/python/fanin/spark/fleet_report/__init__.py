"""The fleet report: telemetry to Parquet and one page, and what the vehicles say when asked."""
