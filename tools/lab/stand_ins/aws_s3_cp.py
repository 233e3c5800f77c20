#!/usr/bin/python3
"""`aws s3 cp --region REGION --no-progress s3://BUCKET/KEY FILE`, without a signature."""

import sys
import urllib.error
import urllib.request
from pathlib import Path

service, operation, _, region, _, url, file = sys.argv[1:]
if (service, operation) != ("s3", "cp"):
    sys.exit(252)
bucket, _, key = url.removeprefix("s3://").partition("/")
try:
    with urllib.request.urlopen(f"https://{bucket}.s3.{region}.amazonaws.com/{key}", timeout=10) as response:
        Path(file).write_bytes(response.read())
except urllib.error.URLError as error:
    sys.exit(f"fatal error: {error}")
