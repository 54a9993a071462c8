"""The runner's service for artifacts, as far as `sweepctl fetch` asks it: what the stand-in for the upload left in the
folder that ACT_ARTIFACTS names, listed with digests, and handed out as archives.

It prints the two variables by which it is found, and serves until it is ended.
"""

import base64
import hashlib
import io
import json
import os
import threading
import urllib.parse
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

METHODS = "/twirp/github.actions.results.api.v1.ArtifactService/"
STORE = os.environ["ACT_ARTIFACTS"]
# What every request must repeat of the token's claims.
IDS = {"workflow_run_backend_id": "act-run", "workflow_job_run_backend_id": "act-job"}
ARCHIVES = {}
LOCK = threading.Lock()


def packed(folder):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        for at, _, names in os.walk(folder):
            for name in names:
                path = os.path.join(at, name)
                file.write(path, os.path.relpath(path, folder))
    return archive.getvalue()


def archive_of(name):
    """An artifact stays as it is once it is there, but for uploads that still go on."""
    with LOCK:
        if name not in ARCHIVES:
            ARCHIVES[name] = packed(os.path.join(STORE, name))
        return ARCHIVES[name]


def listed(asked):
    names = sorted(os.listdir(STORE))
    only = asked.get("name_filter")
    for number, name in enumerate(names, 1):
        if only in (None, name):
            archive = archive_of(name)
            yield {**IDS, "name": name, "database_id": str(number), "size": str(len(archive)),
                   "created_at": "2026-01-01T00:00:00Z", "digest": "sha256:" + hashlib.sha256(archive).hexdigest()}


class Service(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def answer(self, status, body, kind="application/json"):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        name = urllib.parse.unquote(self.path.removeprefix("/blob/"))
        if not self.path.startswith("/blob/") or name not in os.listdir(STORE):
            return self.answer(404, b"")
        return self.answer(200, archive_of(name), "application/zip")

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        method = self.path.removeprefix(METHODS)
        if self.headers["Authorization"] != f"Bearer {TOKEN}" or any(asked.get(key) != IDS[key] for key in IDS):
            return self.answer(403, b'{"code": "permission_denied", "msg": "another run"}')
        if method == "ListArtifacts":
            return self.answer(200, json.dumps({"artifacts": list(listed(asked))}).encode())
        if method == "GetSignedArtifactURL":
            address = f"http://127.0.0.1:{self.server.server_address[1]}/blob/{urllib.parse.quote(asked['name'], safe='')}"
            return self.answer(200, json.dumps({"name": asked["name"], "signed_url": address}).encode())
        return self.answer(404, b'{"code": "bad_route", "msg": "no such method"}')


def part(claims):
    return base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")


TOKEN = f"{part({})}.{part({'scp': 'Actions.Results:act-run:act-job'})}.signed"
SERVER = ThreadingHTTPServer(("127.0.0.1", 0), Service)
print(f"ACTIONS_RESULTS_URL=http://127.0.0.1:{SERVER.server_address[1]}/\nACTIONS_RUNTIME_TOKEN={TOKEN}", flush=True)
SERVER.serve_forever()
