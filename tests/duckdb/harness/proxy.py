"""A proxy between DuckDB and a server that cuts a connection at COMMIT: before the server has heard it, or after it has answered."""

import socket
import struct
import threading

PIECE_BYTES = 65536
BEFORE, AFTER = "before the server has it", "after the server has answered"


class CuttingProxy:
    """Listens on a free loopback port and passes everything on, until it is told to cut the next COMMIT."""

    def __init__(self, host, port):
        self.server = (host, port)
        self.armed = None
        self.cut = threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def arm(self, when):
        """The next COMMIT of any connection is cut `when`; the connection with it."""
        self.cut.clear()
        self.armed = when

    def close(self):
        """Takes no more connections."""
        self.listener.close()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            _Link(self, client, socket.create_connection(self.server))


class _Link:
    """One connection: what the client says is read message by message, what the server says as it comes."""

    def __init__(self, proxy, client, server):
        self.proxy, self.client, self.server = proxy, client, server
        self.muted = False
        threading.Thread(target=self._talk, args=(self._from_client,), daemon=True).start()
        threading.Thread(target=self._talk, args=(self._from_server,), daemon=True).start()

    def _talk(self, direction):
        try:
            direction()
        except OSError:
            pass
        for end in (self.client, self.server):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def _read(self, length):
        data = b""
        while len(data) < length:
            piece = self.client.recv(length - len(data))
            if not piece:
                raise OSError("the client is gone")
            data += piece
        return data

    def _from_client(self):
        started = False
        while True:
            kind = self._read(1) if started else b""
            length = self._read(4)
            body = self._read(struct.unpack("!I", length)[0] - 4)
            # Requests for encryption and cancellation have codes of their own in the place of the version.
            started = started or struct.unpack("!I", body[:4])[0] == 0x00030000
            if kind == b"Q" and b"COMMIT" in body.upper() and self.proxy.armed:
                when, self.proxy.armed = self.proxy.armed, None
                if when == BEFORE:
                    self.proxy.cut.set()
                    return
                self.muted = True
            self.server.sendall(kind + length + body)

    def _from_server(self):
        while True:
            piece = self.server.recv(PIECE_BYTES)
            if not piece:
                return
            if self.muted:
                self.proxy.cut.set()
                return
            self.client.sendall(piece)
