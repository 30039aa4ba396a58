# SPDX-License-Identifier: Apache-2.0
"""A thief of a worker's key, who stands between that worker and its driver: with the stolen key he
is the driver to the one and the worker to the other, and reads everything. Connections by other
keys he can only pass on."""
import ctypes
import select
import socket
import threading

import middle

SUITE = b"\x13\x02"  # TLS_AES_256_GCM_SHA384
TLS13 = 0x0304

ssl = ctypes.CDLL("libssl.so.3")
for name in ("TLS_method", "SSL_CTX_new", "SSL_new", "SSL_SESSION_new", "SSL_CIPHER_find"):
    getattr(ssl, name).restype = ctypes.c_void_p
P, SIZE = ctypes.c_void_p, ctypes.c_size_t
FIND = ctypes.CFUNCTYPE(ctypes.c_int, P, P, SIZE, ctypes.POINTER(P))
USE = ctypes.CFUNCTYPE(ctypes.c_int, P, P, ctypes.POINTER(ctypes.c_char_p), ctypes.POINTER(SIZE),
                       ctypes.POINTER(P))


class Tls:
    """One end of a connection that is authenticated by the stolen key."""

    def __init__(self, sock, name, secret, is_server):
        def session(ssl_):
            psk = P(ssl.SSL_SESSION_new())
            ssl.SSL_SESSION_set1_master_key(psk, secret, SIZE(len(secret)))
            ssl.SSL_SESSION_set_cipher(psk, P(ssl.SSL_CIPHER_find(P(ssl_), SUITE)))
            ssl.SSL_SESSION_set_protocol_version(psk, TLS13)
            return psk.value

        def find(ssl_, _name, _size, out):
            out[0] = session(ssl_)
            return 1

        def use(ssl_, _digest, out_name, out_size, out):
            out_name[0], out_size[0], out[0] = name, len(name), session(ssl_)
            return 1

        self.sock, self.callback = sock, FIND(find) if is_server else USE(use)
        context = P(ssl.SSL_CTX_new(P(ssl.TLS_method())))
        ssl.SSL_CTX_set_ciphersuites(context, b"TLS_AES_256_GCM_SHA384")
        if is_server:
            ssl.SSL_CTX_set_psk_find_session_callback(context, self.callback)
        else:
            ssl.SSL_CTX_set_psk_use_session_callback(context, self.callback)
        self.ssl = P(ssl.SSL_new(context))
        ssl.SSL_CTX_free(context)
        ssl.SSL_set_fd(self.ssl, sock.fileno())
        if (ssl.SSL_accept if is_server else ssl.SSL_connect)(self.ssl) != 1:
            raise OSError("the stolen key is not accepted")

    def fileno(self):
        return self.sock.fileno()

    def read(self):
        data = ctypes.create_string_buffer(1 << 14)
        size = ssl.SSL_read(self.ssl, data, len(data))
        return data.raw[:max(size, 0)]

    def write(self, data):
        ssl.SSL_write(self.ssl, data, len(data))

    def waits(self):
        return ssl.SSL_pending(self.ssl) > 0


class Thief(middle.Middle):
    """line: of a key file, the stolen one. read has what he has read, in clear."""

    def __init__(self, driver, line):
        _, name, _, secret = line.split()
        self.name, self.secret = name.encode(), bytes.fromhex(secret)
        self.offers = len(name).to_bytes(2, "big") + self.name  # in clear in the first message
        self.read = []
        super().__init__(driver)

    def _begin(self, worker, driver):
        if self.offers not in worker.recv(1 << 16, socket.MSG_PEEK):
            self._pass(worker, driver)
            return
        t = threading.Thread(target=self._relay, args=(worker, driver), daemon=True)
        self._threads.append(t)
        t.start()

    def _pass(self, worker, driver):
        super()._begin(worker, driver)

    def _relay(self, worker, driver):
        try:
            ends = [Tls(worker, self.name, self.secret, is_server=True),
                    Tls(driver, self.name, self.secret, is_server=False)]
            while True:
                for e in [e for e in ends if e.waits()] or select.select(ends, [], [])[0]:
                    data = e.read()
                    if not data:
                        return
                    self.read.append((middle.UP if e is ends[0] else middle.DOWN, data))
                    ends[e is ends[0]].write(data)
        except OSError:
            pass
        finally:
            self._close(worker, driver)
