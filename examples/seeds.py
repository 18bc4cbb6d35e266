"""Stands in for the services of seeds.yaml: it answers what it was asked.

    python3 examples/seeds.py [PORT]

It listens at 127.0.0.1, at port 9000 unless said; with port 0 at a free one, which it prints.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

BODY_BYTES_MAX = 1_000_000


class StandIn(BaseHTTPRequestHandler):
    def do_GET(self):
        self.answer(dict(parse_qsl(urlsplit(self.path).query)))

    def do_POST(self):
        length = int(self.headers.get("Content-Length", 0))
        if length > BODY_BYTES_MAX:
            return self.send_error(413)
        self.answer(json.loads(self.rfile.read(length) or "{}"))

    def answer(self, asked):
        service = urlsplit(self.path).path.strip("/")
        body = json.dumps({"service": service, "asked": asked}, ensure_ascii=False).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 9000
    server = ThreadingHTTPServer(("127.0.0.1", port), StandIn)
    print(server.server_port, flush=True)
    server.serve_forever()
