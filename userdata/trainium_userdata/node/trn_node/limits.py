"""Limits of processes and ports."""

from __future__ import annotations

import re
from typing import Any

from . import files
from .check import Check
from .programs import ProgramRun, run

SECONDS = 60
LOGIN_UID = "1000"
UNITS = {"memlock": ("-l", "DefaultLimitMEMLOCKSoft", 1024), "nofile": ("-n", "DefaultLimitNOFILESoft", 1)}
"""Each limit: the flag of ulimit, the property of systemd, and the factor between their units."""


def check_limits(plan: dict[str, Any]) -> list[Check]:
    """The default limits of processes of login users and of services."""
    flags = "; ".join(f"ulimit -S {flag}" for flag, _, _ in UNITS.values())
    logins = last_words(run("su", "-", login_user(), "-c", flags, seconds=SECONDS))
    properties = ",".join(setting for _, setting, _ in UNITS.values())
    result = run("systemctl", "show", f"--property={properties}", seconds=SECONDS)
    values = dict(re.findall(r"^(\w+)=(.*)$", result.out, re.MULTILINE))
    checks: list[Check] = []
    for place, (name, (_, setting, unit)) in enumerate(UNITS.items()):
        service = result.error or values.get(setting, "").replace("infinity", "unlimited") or "unknown"
        if service.isdecimal():
            service = str(int(service) // unit)
        checks.append(check_limit(name, str(plan[name]), logins[place], service))
    return checks


def last_words(result: ProgramRun) -> list[str]:
    """The last words, one for each limit, after the output of the login."""
    words = result.out.split()[-len(UNITS) :]
    return [result.error or "unknown"] * len(UNITS) if result.error or len(words) < len(UNITS) else words


def check_limit(name: str, expected: str, login: str, service: str) -> Check:
    wrong = [
        f"{value} for {user}"
        for value, user in ((login, "login users"), (service, "services"))
        if not is_enough(value, expected)
    ]
    found = "; ".join(wrong) or (login if login == service else f"{login}; {service} for services")
    return Check(name, expected, found, not wrong, f"{name} is {found}, not {expected}")


def login_user() -> str:
    """The image's login user; root if there is none."""
    users = (line.split(":") for line in files.read("etc/passwd").splitlines())
    return next((user[0] for user in users if user[2:3] == [LOGIN_UID]), "root")


def is_enough(value: str, expected: str) -> bool:
    if value in ("unlimited", expected):
        return True
    return value.isdecimal() and expected.isdecimal() and int(value) >= int(expected)


def check_reserved_ports(plan: dict[str, Any]) -> Check:
    wanted = [int(port) for port in plan["reserved_ports"]]
    text = files.read("proc/sys/net/ipv4/ip_local_reserved_ports")
    ranges = [(int(low), int(high or low)) for low, high in re.findall(r"(\d{1,5})(?:-(\d{1,5}))?", text)]
    missing = [str(port) for port in wanted if not any(low <= port <= high for low, high in ranges)]
    expected = ", ".join(map(str, wanted))
    found = f"{', '.join(missing)} not reserved" if missing else expected
    problem = f"the reserved ports lack {', '.join(missing)} (net.ipv4.ip_local_reserved_ports)"
    return Check("reserved-ports", expected, found, not missing, problem)
