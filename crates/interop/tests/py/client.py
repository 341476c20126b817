"""A gRPC client that finds its servers by xDS.

Calls a target until it is answered with the text that is waited for, and
prints every answer that differs from the one before. With `patient` it waits
for a server where there is none yet; otherwise it ends with a failure as soon as
a call fails.
"""

import os
import sys
import time

import grpc

PATIENCE = 20


def main():
    target, awaited, *how = sys.argv[1:]
    deadline = time.monotonic() + PATIENCE
    last = None
    with grpc.insecure_channel(target) as channel:
        call = channel.unary_unary("/test/Call")
        while last != awaited:
            left = max(deadline - time.monotonic(), 0.001)
            patient = "patient" in how
            answer = call(b"", timeout=left, wait_for_ready=patient).decode()
            if answer != last:
                print("answer", answer, flush=True)
            last = answer


assert "GRPC_XDS_BOOTSTRAP_CONFIG" in os.environ
main()
# gRPC's threads may wait for each other for ever when the interpreter ends.
os._exit(0)
