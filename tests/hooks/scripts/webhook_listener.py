# SPDX-License-Identifier: GPL-2.0-or-later
"""webhook_listener.py DIR - answers as the path says (/200, /429 ...; /hang never), keeps the last request in DIR.

/hold answers once DIR/release is there. DIR/port is written when it listens. DIR/request has request line, headers and body."""
import http.server
import os
import sys
import threading

directory = sys.argv[1]
over = threading.Event()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        length = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(length)
        text = self.requestline + "\n" + str(self.headers) + body.decode()
        with open(directory + "/request.new", "w") as f:
            f.write(text)
        os.rename(directory + "/request.new", directory + "/request")
        if self.path == "/hang":
            over.wait(30)
            return
        if self.path.startswith("/hold"):
            while not os.path.exists(directory + "/release") and not over.wait(0.05):
                pass
            self.path = "/200"
        if self.path == "/cut":
            self.close_connection = True
            return
        self.send_response(int(self.path[1:4]))
        if self.path == "/429":
            self.send_header("Retry-After", "7")
        if self.path == "/302":
            self.send_header("Location", "/200")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
with open(directory + "/port.new", "w") as f:
    f.write(str(server.server_address[1]))
os.rename(directory + "/port.new", directory + "/port")
server.serve_forever()
