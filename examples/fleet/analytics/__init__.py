"""The fleet report: an application on Spark that stands on fanin.

``telemetry`` and ``weeks`` say what comes in, ``checking`` reads it, ``rollups`` adds it up, ``asking`` asks
the vehicles by scatter-gather, ``report`` writes the datasets, ``html_page`` and ``charts`` draw the page.
"""
