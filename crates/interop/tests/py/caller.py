"""A gRPC client that finds its servers by xDS, and calls all the time.

Prints `answer <text>` for an answer that it has not had before, `failed <when>
<why>` for a call that failed, and when it is asked to stop, `made <calls>`.
"""

import os
import signal
import sys
import threading
import time

import grpc
from google.protobuf import wrappers_pb2

THREADS = 3
# Of each thread, between the beginnings of two calls.
PACE = 0.01
# A call that takes longer hangs; it must be over when the program has to end.
PATIENCE = 2.5


class Caller:
    def __init__(self, channel):
        self.stopping = threading.Event()
        self._call = channel.unary_unary(
            "/test/Call", response_deserializer=wrappers_pb2.StringValue.FromString
        )
        self._lock = threading.Lock()
        self._seen = set()
        self._made = 0

    def begin(self):
        self._answered(self._call(b"", timeout=20, wait_for_ready=True).value)

    def go_on(self):
        due = time.monotonic()
        while not self.stopping.is_set():
            try:
                self._answered(self._call(b"", timeout=PATIENCE).value)
            except grpc.RpcError as error:
                self._failed(f"{error.code().name} {error.details()}")
            # A call that was slow is not made up for by a burst.
            due = max(due + PACE, time.monotonic() - PACE)
            time.sleep(max(due - time.monotonic(), 0))

    def end(self):
        print("made", self._made, flush=True)

    def _answered(self, answer):
        with self._lock:
            self._made += 1
            if answer not in self._seen:
                self._seen.add(answer)
                print("answer", answer, flush=True)

    def _failed(self, why):
        with self._lock:
            self._made += 1
            print("failed", f"{time.time():.3f}", " ".join(why.split()), flush=True)


def main():
    with grpc.insecure_channel(sys.argv[1]) as channel:
        caller = Caller(channel)
        signal.signal(signal.SIGTERM, lambda *_: caller.stopping.set())
        caller.begin()
        threads = [threading.Thread(target=caller.go_on) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            # Signals are taken between two waits.
            while thread.is_alive():
                thread.join(0.1)
        caller.end()


assert "GRPC_XDS_BOOTSTRAP_CONFIG" in os.environ
main()
# gRPC's threads may wait for each other for ever when the interpreter ends.
os._exit(0)
