"""A gRPC server that answers every call with the text it was started with.

Prints `port <number>` when it listens, and runs until it is ended.
"""

import sys
from concurrent import futures

import grpc


class Anything(grpc.GenericRpcHandler):
    def __init__(self, text):
        self._text = text

    def service(self, _):
        return grpc.unary_unary_rpc_method_handler(lambda *_: self._text)


def main():
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=2))
    server.add_generic_rpc_handlers((Anything(sys.argv[1].encode()),))
    print("port", server.add_insecure_port("127.0.0.1:0"), flush=True)
    server.start()
    server.wait_for_termination()


main()
