"""Where the embedded AWS answers AWS PCS; moto looks for these names beside the models."""

from trainium_local.pcs.responses import PcsResponse

url_bases = [r"https?://pcs\.(.+)\.amazonaws\.com"]
url_paths = {"{0}/$": PcsResponse.dispatch}
