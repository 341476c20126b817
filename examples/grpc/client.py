"""Calls xds:///greeter once a second; where that is, Trunkline says."""

import time

import grpc

call = grpc.insecure_channel("xds:///greeter").unary_unary("/greeter/Hello")
while True:
    try:
        print(call(b"", timeout=5).decode(), flush=True)
    except grpc.RpcError as error:
        print(error.code(), error.details(), flush=True)
    time.sleep(1)
