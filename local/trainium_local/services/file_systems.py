"""EFS: what moto lacks."""

import json
from typing import Any


def put_backup_policy(response: Any) -> tuple[str, dict[str, str]]:
    """Whether AWS Backup backs the file system up. Nothing does so here."""
    policy = response._get_param("BackupPolicy")
    file_systems = response.efs_backend.describe_file_systems(file_system_id=response._get_param("FileSystemId"))[1]
    file_systems[0]._backup = policy["Status"] == "ENABLED"
    return json.dumps({"BackupPolicy": policy}), {"Content-Type": "application/json"}
