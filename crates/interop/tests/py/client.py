"""A gRPC client that finds its servers by xDS.

Calls a target until it is answered with the text that is waited for, and
prints every answer that differs from the one before.
"""

import os
import sys
import time

import grpc

PATIENCE = 20


def main():
    target, awaited = sys.argv[1:]
    deadline = time.monotonic() + PATIENCE
    last = None
    with grpc.insecure_channel(target) as channel:
        call = channel.unary_unary("/test/Call")
        while last != awaited:
            left = deadline - time.monotonic()
            answer = call(b"", timeout=max(left, 0.001)).decode()
            if answer != last:
                print("answer", answer, flush=True)
            last = answer


assert "GRPC_XDS_BOOTSTRAP_CONFIG" in os.environ
main()
