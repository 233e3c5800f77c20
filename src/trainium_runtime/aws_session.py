"""botocore's session as boto3's is used, without what takes boto3 long to start."""

import gzip
import json
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import botocore.session


class AwsSession:
    """Clients for the credentials that botocore finds. boto3 itself would first import its transfers and resources.

    Raises ProfileNotFound for a profile that does not exist.
    """

    def __init__(self) -> None:
        self._session: Any = botocore.session.Session()
        loader = self._session.get_component("data_loader")
        loader.file_loader = _PlainModels()
        loader.list_available_services = cache(partial(_service_names, loader.search_paths))

    def client(self, service: str, *, region_name: str, config: Any) -> Any:
        """A client of a service in a region."""
        return self._session.create_client(service, region_name=region_name, config=config)

    @property
    def region_name(self) -> str | None:
        """That of the environment or the profile."""
        return self._session.get_config_variable("region")

    def get_credentials(self) -> Any:
        """Those that AWS is asked with; None without any."""
        return self._session.get_credentials()


def _service_names(folders: Sequence[str], type_name: str) -> list[str]:  # noqa: ARG001
    """Of all that botocore describes. Its own list opens the folder of each of 400 services to see what is in it."""
    return [one.name for folder in map(Path, folders) if folder.is_dir() for one in folder.iterdir()]


class _PlainModels:
    """Reads descriptions of services into plain dicts, which takes half the time of botocore's OrderedDict."""

    def exists(self, file_path: str) -> bool:
        """Whether there is a file of that name, which is given without its ending."""
        return Path(f"{file_path}.json.gz").is_file() or Path(f"{file_path}.json").is_file()

    def load_file(self, file_path: str) -> Any:
        """What a file holds; None where there is none."""
        plain, packed = Path(f"{file_path}.json"), Path(f"{file_path}.json.gz")
        if plain.is_file():
            return json.loads(plain.read_bytes())
        return json.loads(gzip.decompress(packed.read_bytes())) if packed.is_file() else None
