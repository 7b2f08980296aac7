"""A route that is met with any number of slashes."""

from __future__ import annotations

import re
from typing import Any

from werkzeug.routing import BaseConverter, Map


class SlashedConverter(BaseConverter):
    """Matches ``api//cron/job//``, where the plain route would be redirected or not found.

    What is no job's path, such as ``api/cron/``, matches too, so that a caller gets JSON.

    A scheduler follows no redirect, or follows it without the secret or as GET: the job would not
    run, and nobody would be told.
    """

    part_isolating = False

    def __init__(self, map: Map, prefix: str) -> None:
        super().__init__(map)
        parts = [re.escape(part) for part in prefix.split("/") if part]
        self._prefix = re.compile("/*" + "/+".join(parts))
        self.regex = self._prefix.pattern + "(?s:/.*)?"

    def to_python(self, value: str) -> str:
        return self._prefix.sub("", value, count=1).strip("/")

    def to_url(self, value: Any) -> str:
        raise NotImplementedError("Links are built from the plain route.")
