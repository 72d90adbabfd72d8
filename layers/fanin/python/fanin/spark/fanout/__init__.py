"""A dataset to a queue as one batch.

``driver`` runs the steps: ``bodies`` makes messages of the rows, ``staging`` numbers them, ``opening`` opens
the batch, ``sending`` is what the tasks do, ``summary`` says what came of it. ``folder`` lets two runs write
into one folder, and refuses one of another fan-out. ``failed_rows`` sends failed rows again, and reads what
was sent.
``sink`` does it from a DataFrame: ``df.write.format("fanin")``.

What is in the folder of a fan-out, what a damaged note means, and whose it is:

    staging.json                            which rows are staged; damaged: refused         staging
    rows-<id>/, rows-<id>-left-out/         these rows; those without a message             staging, driver
    batch.json                              batch and key; damaged: written anew            folder
    sending-<batch>                         messages may have been sent                     folder
    sent-<batch>.json, sent-<batch>-<id>/   which results count, and they; damaged: refused folder
    chosen/                                 the failed rows before they were taken          failed_rows
    rejects/                                for people                                      summary
    summary.json                            for people                                      jobs
"""
