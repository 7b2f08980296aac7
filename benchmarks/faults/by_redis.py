"""redis-py's own lock with a time to live, around work in a transaction of its own."""

from __future__ import annotations

from redis import Redis

from .body import Body, run_under
from .hit import LIMIT, Hit, Place


class ByRedis:
    def __init__(self, place: Place, body: Body) -> None:
        self.redis = Redis(unix_socket_path=place.redis)
        self.engine, self.body = place.engine(), body

    def fire(self, hit: Hit) -> str:
        lock = self.redis.lock(hit.job, timeout=LIMIT, blocking=False)
        return run_under(lock, self.engine, self.body, hit)
