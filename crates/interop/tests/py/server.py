"""A gRPC server that is told by xDS how to serve.

Listens on the given address once its listener has come, and answers every call
with a text. Prints `started`, and runs until it is ended.
"""

import os
import sys
from concurrent import futures

import grpc


class Anything(grpc.GenericRpcHandler):
    def __init__(self, text):
        self._text = text

    def service(self, _):
        return grpc.unary_unary_rpc_method_handler(lambda *_: self._text)


def main():
    address, text = sys.argv[1:]
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=2), xds=True)
    server.add_generic_rpc_handlers((Anything(text.encode()),))
    server.add_insecure_port(address)
    server.start()
    print("started", flush=True)
    server.wait_for_termination()


assert "GRPC_XDS_BOOTSTRAP_CONFIG" in os.environ
main()
