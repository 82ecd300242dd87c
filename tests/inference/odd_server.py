"""A web server that answers wrongly, late or not at all."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextmanager
def odd_server(content, delay_s=0.0, drop=(), *, hangs_up=False):
    """Answers everything alike; hangs up on requests whose number is in `drop`, or after each."""

    class Odd(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        asked = 0

        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            Odd.asked += 1
            time.sleep(delay_s)
            if Odd.asked in drop:
                self.close_connection = True
                return
            self.do_GET()

        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
            self.close_connection = hangs_up  # without a word in the headers, as a proxy does

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Odd)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1/models/odd", Odd
    finally:
        server.shutdown()
        server.server_close()
