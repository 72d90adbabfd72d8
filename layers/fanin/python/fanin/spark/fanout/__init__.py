"""A dataset to a queue as one batch.

``driver`` runs the steps: ``bodies`` makes messages of the rows, ``staging`` numbers them, ``opening`` opens
the batch, ``sending`` is what the tasks do, ``summary`` says what came of it. ``sent_messages`` and
``rejects_folder`` let two runs write into one folder. ``failed_rows`` and ``earlier_batch`` send failed rows
again; ``sent_rows`` reads what was sent; ``queue_check`` and ``folder_owner`` refuse what would go wrong.
``sink`` does it from a DataFrame: ``df.write.format("fanin")``.

What is in the folder of a fan-out, what a damaged note means, and whose it is:

    staging.json                            which rows are staged; damaged: refused         staging
    rows-<id>/, rows-<id>-left-out/         these rows; those without a message             staging, driver
    batch.json                              batch and key; damaged: written anew            folder_owner
    sending-<batch>                         messages may have been sent                     sent_messages
    sent-<batch>.json, sent-<batch>-<id>/   which results count, and they; damaged: refused sent_messages
    chosen/                                 the failed rows before they were taken          failed_rows
    rejects/                                for people                                      rejects_folder
    summary.json                            for people                                      jobs
"""
