"""The application for a web server: `gunicorn wsgi:app`, `flask --app wsgi …`."""

from __future__ import annotations

from sample_app import create_app

app = create_app()
