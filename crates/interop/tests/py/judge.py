"""Asks gRPC's xDS client what it makes of resources.

Reads a file of cases, one to a line: a name, a type, and the body in
hexadecimal. Serves each of them to a client or a server of gRPC, inside of what
leads to it, and writes its name to a second file with `ACK`, or with `NACK` and
the error.
"""

import os
import sys
import threading
from concurrent import futures

import grpc
from envoy.config.cluster.v3 import cluster_pb2
from envoy.config.listener.v3 import listener_pb2
from envoy.config.route.v3 import route_pb2
from envoy.extensions.filters.http.router.v3 import router_pb2
from envoy.extensions.filters.network.http_connection_manager.v3 import (
    http_connection_manager_pb2 as manager_pb2,
)
from envoy.service.discovery.v3 import ads_pb2_grpc, discovery_pb2
from google.protobuf import any_pb2

PATIENCE = 10
LISTENER = "type.googleapis.com/envoy.config.listener.v3.Listener"
ROUTES = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
CLUSTER = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
ENDPOINTS = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"


def packed(message):
    any_message = any_pb2.Any()
    any_message.Pack(message)
    return any_message


class Case:
    def __init__(self, line):
        self.name, self.side, self.type_url, body = line.split(" ")
        self.body = any_pb2.Any(type_url=self.type_url, value=bytes.fromhex(body))
        self.verdict = None
        self.judged = threading.Event()

    def judge(self, request):
        detail = request.error_detail
        self.verdict = f"NACK {detail.message}" if detail.code else "ACK"
        self.judged.set()

    def resource(self, type_url):
        """What is sent of a type on the way to the case."""
        if type_url == self.type_url:
            return self.body
        if type_url == LISTENER:
            return packed(self.listener())
        cluster = cluster_pb2.Cluster(name=self.name, type="EDS")
        cluster.eds_cluster_config.eds_config.ads.SetInParent()
        return packed(cluster)

    def listener(self):
        manager = manager_pb2.HttpConnectionManager()
        manager.http_filters.add(name="router").typed_config.Pack(router_pb2.Router())
        if self.type_url == ROUTES:
            manager.rds.route_config_name = self.name
            manager.rds.config_source.ads.SetInParent()
        else:
            host = manager.route_config.virtual_hosts.add(name="all", domains=["*"])
            route = host.routes.add()
            route.match.prefix = ""
            route.route.cluster = self.name
        listener = listener_pb2.Listener(name=target(self.name))
        listener.api_listener.api_listener.Pack(manager)
        return listener


def target(name):
    """The listener of a case, whose name is that of its channel."""
    return name.rsplit("/", 1)[-1]


class Ads(ads_pb2_grpc.AggregatedDiscoveryServiceServicer):
    def __init__(self, cases):
        self._cases = {}
        for case in cases:
            self._cases[case.name] = case
            self._cases[target(case.name)] = case

    def StreamAggregatedResources(self, requests, _):
        sent = set()
        waiting = {}
        for request in requests:
            case = waiting.pop(request.response_nonce, None)
            if case:
                case.judge(request)
            for name in request.resource_names:
                key = (request.type_url, name)
                case = self._cases.get(name)
                if case is None or key in sent:
                    continue
                sent.add(key)
                nonce = str(len(sent))
                if request.type_url == case.type_url:
                    waiting[nonce] = case
                yield discovery_pb2.DiscoveryResponse(
                    version_info=nonce,
                    nonce=nonce,
                    type_url=request.type_url,
                    resources=[case.resource(request.type_url)],
                )


def ask_client(case):
    with grpc.insecure_channel(f"xds:///{target(case.name)}") as channel:
        channel.subscribe(lambda _: None, try_to_connect=True)
        case.judged.wait(PATIENCE)


def ask_server(case):
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=1), xds=True)
    server.add_insecure_port(case.name)
    server.start()
    case.judged.wait(PATIENCE)
    server.stop(None).wait(PATIENCE)


def main():
    with open(sys.argv[1], encoding="ascii") as file:
        cases = [Case(line.strip()) for line in file]
    # A stream takes one thread as long as it lasts.
    ads = grpc.server(futures.ThreadPoolExecutor(max_workers=64))
    ads_pb2_grpc.add_AggregatedDiscoveryServiceServicer_to_server(Ads(cases), ads)
    port = ads.add_insecure_port("127.0.0.1:0")
    ads.start()
    # It is read with the first channel.
    bootstrap = os.environ["GRPC_XDS_BOOTSTRAP_CONFIG"]
    os.environ["GRPC_XDS_BOOTSTRAP_CONFIG"] = bootstrap.replace("PORT", str(port))
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        for case in cases:
            (ask_server if case.side == "server" else ask_client)(case)
            verdict = (case.verdict or "silence").replace("\n", " ")
            print(case.name, verdict, file=file)


main()
# gRPC's threads may wait for each other for ever when the interpreter ends.
os._exit(0)
