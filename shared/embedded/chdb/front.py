"""A small HTTP front of chdb, which is ClickHouse in process: enough of ClickHouse's HTTP interface for Weir and its tests.

It serves on a free port of this machine, which it prints with its process, with data in the folder of its first argument, and ends when its stdin does.
chdb has neither users nor CREATE ROW POLICY. So the one user has the row policy of Weir's table from the start, in as many databases
as tests take.
"""

import os
import re
import socketserver
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

from chdb import _chdb

DATABASES = 2000
POLICY = "organization = getSetting('log_comment') OR getSetting('log_comment') = '*'"

CONFIG = """<clickhouse>
  <users_config>{folder}/users.xml</users_config>
  <logger><level>none</level></logger>
</clickhouse>"""

USERS = """<clickhouse>
  <profiles><default/></profiles>
  <quotas><default/></quotas>
  <users><default>
    <password></password><networks><ip>::/0</ip></networks><profile>default</profile><quota>default</quota>
    <databases>{databases}</databases>
  </default></users>
</clickhouse>"""

NOT_SETTINGS = {"query", "database", "user", "password", "wait_end_of_query"}


def prepare(folder):
    policies = "".join(
        f"<weir_test_{n}><entries><filter>{POLICY}</filter></entries></weir_test_{n}>" for n in range(DATABASES)
    )
    with open(f"{folder}/users.xml", "w", encoding="utf-8") as file:
        file.write(USERS.format(databases=policies))
    with open(f"{folder}/config.xml", "w", encoding="utf-8") as file:
        file.write(CONFIG.format(folder=folder))
    return f"{folder}/data?config-file={folder}/config.xml"


class Front(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # an answer goes out at once: in two parts, the second would wait for the first's acknowledgement
    disable_nagle_algorithm = True

    def do_POST(self):
        params = dict(parse_qsl(urlsplit(self.path).query, keep_blank_values=True, errors="surrogateescape"))
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        query = params.get("query", "").encode(errors="surrogateescape")
        try:
            if query.startswith(b"INSERT"):
                result, headers = self.insert(params, query, body)
            else:
                result, headers = self.answer(params, query + body)
            self.reply(200, result, headers)
        except Exception as error:
            text = str(error)
            code = re.search(r"Code: (\d+)", text)
            self.reply(500, text.encode(), {"X-ClickHouse-Exception-Code": code.group(1) if code else "1"})

    def insert(self, params, query, body):
        # Data that stands behind a statement ends where text might; in a file it may be any bytes.
        with tempfile.NamedTemporaryFile(dir=self.server.folder) as file:
            file.write(body)
            file.flush()
            begin, format = query.rsplit(b" FORMAT ", 1)
            return self.answer(params, begin + f" FROM INFILE '{file.name}' COMPRESSION 'none' FORMAT ".encode() + format)

    def answer(self, params, query):
        if query.strip() == b"DATABASE":
            with self.server.lock:
                self.server.taken += 1
                return f"weir_test_{self.server.taken - 1}".encode(), {}
        connection = _chdb.connect(self.server.data)
        try:
            for name, value in params.items():
                if name not in NOT_SETTINGS:
                    quoted = value.replace("\\", "\\\\").replace("'", "\\'")
                    connection.query(f"SET {name} = '{quoted}'", "Null")
            if "database" in params:
                connection.query(f"USE {params['database']}", "Null")
            result = connection.query(query, "TabSeparated")
            summary = f'{{"read_bytes":"{result.storage_bytes_read()}"}}'
            return bytes(result.bytes() or b""), {"X-ClickHouse-Summary": summary}
        finally:
            connection.close()

    def reply(self, status, body, headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 128
    lock = threading.Lock()
    taken = 0

    def server_bind(self):
        socketserver.TCPServer.server_bind(self)  # HTTPServer's would look up this machine's name


def main():
    server = Server(("127.0.0.1", 0), Front)
    server.folder = sys.argv[1]
    server.data = prepare(server.folder)
    keep = _chdb.connect(server.data)  # the engine lives as long as a connection
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], os.getpid(), flush=True)
    sys.stdin.read()
    del keep
    os._exit(0)


main()
