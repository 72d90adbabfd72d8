"""All JSON Schemas of the API: the ledger's and those of the patterns."""

from __future__ import annotations

from typing import Final

from fanin.entry.http import schemas, schemas_buffers, schemas_directory, schemas_frames, schemas_scatters
from fanin.entry.http.schemas import Schema

SCHEMAS: Final[dict[str, Schema]] = {
    **schemas.SCHEMAS,
    **schemas_buffers.SCHEMAS,
    **schemas_directory.SCHEMAS,
    **schemas_frames.SCHEMAS,
    **schemas_scatters.SCHEMAS,
}
