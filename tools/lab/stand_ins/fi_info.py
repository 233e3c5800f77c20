#!/usr/bin/python3
"""fi_info -p efa, as libfabric prints it: one block for each device and endpoint type."""

import sys

from node_hardware import description

BLOCK = """\
provider: efa
    fabric: efa
    domain: rdmap{number}s27-{suffix}
    version: 122.0
    type: {endpoint}
    protocol: {protocol}"""

count = description()["efa_devices"]
if not count:
    sys.exit("fi_getinfo: -61 (No data available)")
for number in range(count):
    print(BLOCK.format(number=number, suffix="rdm", endpoint="FI_EP_RDM", protocol="FI_PROTO_EFA"))
    print(BLOCK.format(number=number, suffix="dgrm", endpoint="FI_EP_DGRAM", protocol="FI_PROTO_EFA"))
