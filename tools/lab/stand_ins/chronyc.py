#!/usr/bin/python3
"""Some lines of chronyc tracking, as chrony prints them."""

from node_hardware import description

synchronised = description()["clock_synchronised"]
print(f"""\
Reference ID    : {"A9FEA97B (169.254.169.123)" if synchronised else "00000000 ()"}
Stratum         : {4 if synchronised else 0}
Last offset     : +0.000001209 seconds
Leap status     : {"Normal" if synchronised else "Not synchronised"}""")
