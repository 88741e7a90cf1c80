"""Where the library to preload is."""

from pathlib import Path

from strandline import pausable


def get_binary_path_from_package(stem: str) -> Path:
    """The path of the library, whatever it is called elsewhere."""
    return Path(pausable._path())
