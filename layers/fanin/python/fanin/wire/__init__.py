"""The JSON form of requests and answers, one module for each feature, used by both ends.

Every shape is declared once, by ``shapes.request`` or ``shapes.answer``, beside the value it stands for. From
the declaration come the schema in the OpenAPI document, the check of requests, the writer and the reader.
What a field means, its docstring says to the document; ``described`` is for what only JSON has.

Points in time are RFC 3339 strings in UTC with milliseconds, durations whole seconds, batch ids integers,
item ids strings. Half-open ranges are ``from`` … ``to``. A value that is not set is null in an answer, and
null or left out in a request.
"""
