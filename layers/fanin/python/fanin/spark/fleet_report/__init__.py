"""The fleet report: analytics that stand on fanin, with an extra of their own, ``fanin[report]``.

``telemetry`` and ``weeks`` say what comes in, ``checking`` reads it, ``rollups`` adds it up, ``asking`` asks
the vehicles by scatter-gather, ``report`` writes the datasets, ``html_page`` and ``charts`` draw the page.
"""
