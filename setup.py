"""What the wheel holds: the packages, and the folders beside them, which a wheel carries inside `dominds/shared`."""

from __future__ import annotations

from setuptools import find_packages, setup

SHARED = ("templates", "static", "locale", "requirements")
NAMES = {f"dominds.shared.{folder}": folder for folder in SHARED}

setup(
    packages=[*find_packages(include=["dominds*", "dialogs*", "health*"]), *NAMES],
    package_dir=NAMES,
    package_data={"dominds": ["defaults.yaml"], "dialogs.sample": ["*.json"], **{name: ["**/*"] for name in NAMES}},
    exclude_package_data={"dominds.shared.locale": ["**/*.po"]},
)
