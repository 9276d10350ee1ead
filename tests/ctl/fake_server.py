#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A control server that answers from canned files, or misbehaves. One thread per client.

usage: fake_server.py SOCKET CANNED.json...     serves until killed; --watch answers go through the files in turn
"""
import json
import os
import socket
import sys
import threading


def ok(body):
    return b"OK %d\n" % len(body) + body


class Server:
    """answer(line) gives the bytes to send; None hangs until the client goes away."""

    def __init__(self, path, answer):
        self.path, self.answer, self.lines = path, answer, []
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(path)
        self.listener.listen(16)
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.talk, args=(client,), daemon=True).start()

    def talk(self, client):
        line = b""
        try:
            while not line.endswith(b"\n"):
                got = client.recv(1024)
                if not got:
                    break
                line += got
            line = line.decode().rstrip("\n")
            self.lines.append(line)
            out = self.answer(line)
            if out is None:
                client.recv(1)      # hang: ends when the client gives up
            else:
                client.sendall(out)
        except OSError:
            pass
        finally:
            client.close()

    def close(self):
        self.listener.close()
        if os.path.exists(self.path):
            os.unlink(self.path)


def canned(files):
    """Answers of the daemon for each read verb; "histograms" moves on to the next file."""
    answers = []
    for name in files:
        with open(name, encoding="utf-8") as f:
            answers.append(json.load(f))
    asked = [0]

    def answer(line):
        current = answers[min(asked[0], len(answers) - 1)]
        if line == "status":
            return ok(json.dumps(current["status"]).encode())
        if line == "histograms":
            asked[0] += 1
            return ok(json.dumps(current).encode())
        if line == "reload":
            return ok(b"configuration read: 3 files, 14 rules\n")
        if line.startswith("undo "):
            return ok(b"1 undo started\n")
        return b"ERR EINVAL unknown verb\n"
    return answer


if __name__ == "__main__":
    server = Server(sys.argv[1], canned(sys.argv[2:]))
    server.thread.join()
