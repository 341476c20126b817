"""Asks a server how its client of one node stands, by CSDS.

Prints for each resource its type, name and status, and of what is rejected
what the client said.
"""

import os
import sys

import grpc
from envoy.service.status.v3 import csds_pb2, csds_pb2_grpc
from envoy.admin.v3 import config_dump_shared_pb2 as shared


def main():
    port, node = sys.argv[1:]
    request = csds_pb2.ClientStatusRequest()
    request.node_matchers.add().node_id.exact = node
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub = csds_pb2_grpc.ClientStatusDiscoveryServiceStub(channel)
        response = stub.FetchClientStatus(request, timeout=10)
    for client in response.config:
        for config in client.generic_xds_configs:
            kind = config.type_url.rsplit(".", 1)[-1]
            status = shared.ClientResourceStatus.Name(config.client_status)
            error = config.error_state.details.replace("\n", " ")
            print(f"{kind} {config.name} {status} {error}".rstrip(), flush=True)


main()
# gRPC's threads may wait for each other for ever when the interpreter ends.
os._exit(0)
