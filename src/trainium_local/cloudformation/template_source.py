"""Where a template's text comes from: the request itself, or an object in S3."""

import re
from urllib.parse import unquote, urlparse

from botocore.exceptions import ClientError

from trainium_local.cloudformation.errors import ValidationError
from trainium_local.cloudformation.template_structure import check_request
from trainium_local.resources import api

_PATH_STYLE_HOST = re.compile(r"(s3[.-].*|s3|localhost|127\..*|\[?::1\]?)$")


def fetch(url: str, region: str) -> str:
    """The text behind a TemplateURL, path style or virtual-hosted. Raises ValidationError if it is not there."""
    parsed = urlparse(url)
    host, path = parsed.hostname or "", unquote(parsed.path.lstrip("/"))
    if _PATH_STYLE_HOST.match(host):
        bucket, _, key = path.partition("/")
    else:
        bucket, key = re.split(r"\.s3[.-]|\.localhost", host)[0], path
    try:
        text = api.call("s3", "GetObject", region, {"Bucket": bucket, "Key": key})["Body"].read().decode()
        check_request(TemplateObject=text)
        return text
    except UnicodeDecodeError as error:
        raise ValidationError("Template format error: unsupported structure.") from error
    except ClientError as error:
        raise ValidationError(f"S3 error: {error.response['Error'].get('Message', error)} ({bucket}/{key})") from error
