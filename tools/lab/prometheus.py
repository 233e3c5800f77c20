"""The real Prometheus on this machine: it finds the nodes in the embedded EC2 with the files of examples/prometheus."""

import json
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import yaml

from tools.lab.base_rootfs import prometheus_rootfs
from tools.lab.laboratory import Laboratory
from tools.lab.paths import REPOSITORY, RUN
from tools.lab.waiting import wait_for

EXAMPLE = REPOSITORY / "examples/prometheus"
ADDRESS = "127.0.0.1:9090"
FOLDER = RUN / "prometheus"


class Prometheus:
    """A running Prometheus, asked through its HTTP API."""

    def query(self, expression: str) -> Sequence[Mapping[str, Any]]:
        """The result of an instant query. Raises HTTPError if the expression is invalid."""
        return self._get("query", query=expression)["result"]

    def alerts(self) -> Mapping[str, Mapping[str, Any]]:
        """The pending and firing alerts by name."""
        return {alert["labels"]["alertname"]: alert for alert in self._get("alerts")["alerts"]}

    def _get(self, what: str, **options: str) -> Any:
        url = f"http://{ADDRESS}/api/v1/{what}?{urllib.parse.urlencode(options)}"
        with urllib.request.urlopen(url, timeout=60) as response:
            return json.load(response)["data"]


@contextmanager
def prometheus(lab: Laboratory) -> Generator[Prometheus]:
    """Run Prometheus with the example's configuration, except for the endpoint of EC2 and shorter intervals."""
    FOLDER.mkdir()
    settings = yaml.safe_load((EXAMPLE / "prometheus.yml").read_text())
    settings["global"] = {"scrape_interval": "2s", "evaluation_interval": "2s"}
    settings["rule_files"] = [str(EXAMPLE / "trn-rules.yml")]
    (found,) = settings["scrape_configs"][0]["ec2_sd_configs"]
    found |= {"endpoint": lab.connection.endpoint, "refresh_interval": "2s"}
    (FOLDER / "prometheus.yml").write_text(yaml.safe_dump(settings))
    program = prometheus_rootfs().folder / "usr/bin/prometheus"
    options = [f"--config.file={FOLDER / 'prometheus.yml'}", f"--storage.tsdb.path={FOLDER / 'data'}"]
    with (FOLDER / "log").open("wb") as log:
        running = subprocess.Popen([program, *options, f"--web.listen-address={ADDRESS}"], stderr=log, stdout=log)
    try:
        asked = Prometheus()
        wait_for("Prometheus", lambda: _answers(asked), pause=0.5)
        yield asked
    finally:
        running.terminate()
        running.wait()


def _answers(asked: Prometheus) -> bool:
    try:
        asked.query("1")
    except OSError:
        return False
    return True


def promtool(*words: str) -> str:
    """Run promtool in the folder of the example, and return its output.

    Raises:
        AssertionError: It did not end with 0.
    """
    program = prometheus_rootfs().folder / "usr/bin/promtool"
    run = subprocess.run([program, *words], cwd=EXAMPLE, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout
