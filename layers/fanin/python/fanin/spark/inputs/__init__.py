"""One way to open a dataset, whichever job reads it.

``listing`` finds the files, and the folders that are tables; ``csv_files`` and ``json_lines`` read text
strictly, and ``opening`` gives every format as a DataFrame. What cannot be read comes with the reason.
"""
