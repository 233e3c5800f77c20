"""The URLs of AWS PCS. moto looks for `url_bases` and `url_paths`."""

from trainium_local.pcs.responses import PcsResponse

url_bases = [r"https?://pcs\.(.+)\.amazonaws\.com"]
url_paths = {"{0}/$": PcsResponse.dispatch}
