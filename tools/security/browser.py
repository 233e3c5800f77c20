"""A Chromium that opens attack.html, and the server for this page and its reports."""

import json
import queue
import subprocess
import tempfile
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tools.security.targets import Target

PAGE = Path(__file__).with_name("attack.html")
REPORT_SECONDS = 180
ATTACKER, REBOUND = "attacker.example", "rebound.example"
"""Names that Chromium resolves to 127.0.0.1."""


class Attacker:
    """The attacker's web site. A report has the attacks that the page saw succeed, and the harm to the target."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.reports: queue.Queue[tuple[set[str], set[str]]] = queue.Queue()
        self.port = 0

    def page(self, host: str) -> bytes:
        """A page that attacks the target through a host name."""
        text = PAGE.read_text().replace("TARGET", f"http://{host}:{self.target.port}")
        return text.replace("REPORT", f"http://{ATTACKER}:{self.port}/").encode()


@contextmanager
def attacker(target: Target) -> Generator[Attacker]:
    site = Attacker(target)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(site))
    site.port = server.server_port
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()


def foreign(site: Attacker, _folder: Path) -> str:
    """A page of another site."""
    return f"http://{ATTACKER}:{site.port}/"


def rebinding(site: Attacker, _folder: Path) -> str:
    """A page of the attacker whose name and port then lead to the target, so that the page has the target's origin."""
    return f"http://{REBOUND}:{site.target.port}/page"


def local_file(site: Attacker, folder: Path) -> str:
    """A page in a local file, which has an opaque origin."""
    file = folder / "page.html"
    file.write_bytes(site.page("127.0.0.1"))
    return file.as_uri()


ORIGINS: dict[str, Callable[[Attacker, Path], str]] = {
    "a foreign origin": foreign,
    "a rebinding name": rebinding,
    "a file": local_file,
}


def attack(target: Target, origin: Callable[[Attacker, Path], str]) -> set[str]:
    """Open the page from an origin and wait for its two reports. Returns the attacks that succeeded."""
    with (
        attacker(target) as site,
        tempfile.TemporaryDirectory(
            prefix="trn-chromium-",
            ignore_cleanup_errors=True,  # Processes that Chromium started may still write.
        ) as folder,
    ):
        # The attacker serves the page at the rebound name, and the target everything else at this name.
        proxy = f"PROXY 127.0.0.1:{site.port}"
        script = f"function FindProxyForURL(u, h) {{ return u.endsWith('/page') ? '{proxy}' : 'DIRECT'; }}"
        command = [
            "chromium",
            "--headless",
            "--no-sandbox",  # Chromium runs as root, and only loads our own pages.
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
            f"--user-data-dir={folder}",
            "--host-resolver-rules=MAP *.example 127.0.0.1",
            f"--proxy-pac-url=data:application/x-ns-proxy-autoconfig,{quote(script)}",
            "--remote-debugging-port=0",  # Without it, a headless Chromium ends once the page is loaded.
            origin(site, Path(folder)),
        ]
        with (Path(folder) / "log").open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as browser:
            try:
                reports = [site.reports.get(timeout=REPORT_SECONDS) for _ in range(2)]
            finally:
                browser.terminate()
    return set[str]().union(*(output | seen for output, seen in reports))


def _handler(site: Attacker) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            rebound = self.path.startswith("http://")  # Only a request to a proxy has the whole URL.
            self._send(site.page(REBOUND if rebound else "127.0.0.1"))

        def do_POST(self) -> None:
            outcomes: dict[str, bool] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            site.reports.put(({name for name, succeeded in outcomes.items() if succeeded}, site.target.harm()))
            self._send(b"")

        def _send(self, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Access-Control-Allow-Origin", "*")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Print nothing: the page reports its results."""

    return Handler
