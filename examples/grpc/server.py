"""Answers every call with its own port: python server.py 50051"""

import sys
from concurrent import futures

import grpc

port = sys.argv[1]


class Greeter(grpc.GenericRpcHandler):
    def service(self, call):
        answer = lambda request, context: b"hello from " + port.encode()
        return grpc.unary_unary_rpc_method_handler(answer)


server = grpc.server(futures.ThreadPoolExecutor(), handlers=[Greeter()])
server.add_insecure_port(f"127.0.0.1:{port}")
server.start()
print(f"listening on {port}", flush=True)
server.wait_for_termination()
