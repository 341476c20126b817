"""A client of variants (TP2), with the public messages only.

Subscribes by locators as a caching proxy does: to several variants of one name
on one stream, beside plain names. It judges by itself which variant is for
which subscription. Between requests it changes the files that the server reads, which begin with a
variant of `r` for env=prod, one for env=test, and `plain`.

    variants.py PORT FOLDER delta|sotw

Prints each step that holds, and ends with a failure at the first that does not.
"""

import json
import os
import queue
import sys
import threading

import grpc
from envoy.config.core.v3 import base_pb2
from envoy.config.route.v3 import route_pb2
from envoy.service.discovery.v3 import ads_pb2_grpc
from envoy.service.discovery.v3 import discovery_pb2 as xds

ROUTE = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
RESOURCE = "type.googleapis.com/envoy.service.discovery.v3.Resource"
PATIENCE = 20


# What the operator writes.


def value(key, text):
    return {"constraint": {"key": key, "value": text}}


def exists(key):
    return {"constraint": {"key": key, "exists": {}}}


def both(*all_of):
    return {"and_constraints": {"constraints": list(all_of)}}


def no(it):
    return {"not_constraints": it}


def resource(name, body, constraints=None):
    route = {"@type": ROUTE, "name": name, "internal_only_headers": [body]}
    if constraints is None:
        return route
    full = {"name": name, "dynamic_parameter_constraints": constraints}
    return {"@type": RESOURCE, "name": name, "resource_name": full, "resource": route}


def publish(*resources):
    """All that the server shall serve, in one step. JSON is YAML, too."""
    new = os.path.join(FOLDER, ".new")
    with open(new, "w") as file:
        json.dump({"resources": list(resources)}, file)
    os.replace(new, os.path.join(FOLDER, "routes.yaml"))


PROD, TEST = value("env", "prod"), value("env", "test")
V1, V2 = value("version", "v1"), value("version", "v2")


# What a client makes of it.


def matches(constraints, params):
    """What TP2 says constraints mean, read by another than the server."""
    kind = constraints.WhichOneof("type")
    if kind is None:
        return True
    if kind == "constraint":
        single = constraints.constraint
        if single.WhichOneof("constraint_type") == "exists":
            return single.key in params
        return params.get(single.key) == single.value
    if kind == "or_constraints":
        return any(matches(it, params) for it in constraints.or_constraints.constraints)
    if kind == "and_constraints":
        return all(matches(it, params) for it in constraints.and_constraints.constraints)
    return not matches(constraints.not_constraints, params)


def check(holds, what, seen=None):
    if not holds:
        print(f"FAILED: {what}\n{seen if seen is not None else ''}", flush=True)
        sys.exit(1)


def done(what):
    print("holds:", what, flush=True)


class Cache:
    """Variants by name and constraints, and who subscribes."""

    def __init__(self):
        self.held = {}
        self.asked = []

    def key(self, name):
        return name.name, name.dynamic_parameter_constraints.SerializeToString(deterministic=True)

    def take(self, wrapped):
        if wrapped.HasField("resource_name"):
            check(
                wrapped.name == wrapped.resource_name.name,
                "a variant also has its name where old clients look for it",
                wrapped,
            )
            name = wrapped.resource_name
        else:
            name = base_name(wrapped.name)
        route = route_pb2.RouteConfiguration()
        check(wrapped.resource.Unpack(route), "the body is of the type", wrapped)
        check(route.name == name.name, "the body has the name", wrapped)
        wanted = any(
            asked == name.name and matches(name.dynamic_parameter_constraints, params)
            for asked, params in self.asked
        )
        check(wanted, "a variant matches what was asked for", wrapped)
        body = route.internal_only_headers[0]
        self.held[self.key(name)] = (name, wrapped.version, body)
        return body

    def find(self, name, params):
        """The bodies that a subscription leads to."""
        return [
            body
            for held, _, body in self.held.values()
            if held.name == name and matches(held.dynamic_parameter_constraints, params)
        ]

    def check_unambiguous(self):
        for name, params in self.asked:
            found = self.find(name, params)
            check(len(found) <= 1, f"{name} {params} leads to one variant at most", found)


def base_name(name):
    return xds.ResourceName(name=name)


def locators(asked):
    return [xds.ResourceLocator(name=n, dynamic_parameters=p) for n, p in asked]


class Stream:
    """Requests from a queue, responses into one."""

    def __init__(self, method):
        self.requests, self.responses = queue.Queue(), queue.Queue()
        self.channel = grpc.insecure_channel(f"127.0.0.1:{PORT}")
        stub = ads_pb2_grpc.AggregatedDiscoveryServiceStub(self.channel)
        self.call = getattr(stub, method)(iter(self.requests.get, None))
        threading.Thread(target=self.read, daemon=True).start()
        self.node = base_pb2.Node(id="proxy", cluster="interop", user_agent_name="conformance")

    def read(self):
        try:
            for response in self.call:
                self.responses.put(response)
        except grpc.RpcError as error:
            self.responses.put(error)

    def send(self, request):
        if self.node is not None:
            request.node.CopyFrom(self.node)
            self.node = None
        request.type_url = ROUTE
        self.requests.put(request)

    def receive(self, what):
        try:
            response = self.responses.get(timeout=PATIENCE)
        except queue.Empty:
            check(False, f"nothing came in {PATIENCE} s: {what}")
        check(not isinstance(response, grpc.RpcError), f"the stream goes on: {what}", response)
        return response

    def close(self):
        self.requests.put(None)
        self.call.cancel()
        self.channel.close()


class Delta(Stream):
    def __init__(self):
        super().__init__("DeltaAggregatedResources")
        self.cache = Cache()

    def subscribe(self, *asked, names=(), held=None):
        self.cache.asked += list(asked) + [(name, {}) for name in names]
        request = xds.DeltaDiscoveryRequest(
            resource_names_subscribe=names, initial_resource_versions=held or {}
        )
        request.resource_locators_subscribe.extend(locators(asked))
        self.send(request)

    def unsubscribe(self, *asked):
        self.cache.asked = [one for one in self.cache.asked if one not in asked]
        request = xds.DeltaDiscoveryRequest()
        request.resource_locators_unsubscribe.extend(locators(asked))
        self.send(request)
        for key, (name, _, _) in list(self.cache.held.items()):
            left = [p for n, p in self.cache.asked if n == name.name]
            if not any(matches(name.dynamic_parameter_constraints, p) for p in left):
                del self.cache.held[key]

    def expect(self, what, bodies, removed=0, names=()):
        """One response with just this, accepted."""
        response = self.receive(what)
        present = {r.name for r in response.resources}
        check(
            not present & set(response.removed_resources),
            "no name is both there and gone",
            response,
        )
        for gone in response.removed_resource_names:
            check(
                self.cache.key(gone) in self.cache.held,
                "a variant that is gone is told by the constraints that it had",
                response,
            )
            del self.cache.held[self.cache.key(gone)]
        for name in response.removed_resources:
            for key in [k for k in self.cache.held if k[0] == name]:
                del self.cache.held[key]
        got = sorted(self.cache.take(r) for r in response.resources)
        check(got == sorted(bodies), f"{what}: {sorted(bodies)}, no more and no less", response)
        check(
            len(response.removed_resource_names) == removed,
            f"{what}: {removed} variants go",
            response,
        )
        check(
            sorted(response.removed_resources) == sorted(names),
            f"{what}: the names {list(names)} go",
            response,
        )
        self.cache.check_unambiguous()
        ack = xds.DeltaDiscoveryRequest(response_nonce=response.nonce)
        self.send(ack)
        done(what)

    def leads(self, name, params, body):
        found = self.cache.find(name, params)
        check(found == ([body] if body else []), f"{name} {params} leads to {body}", found)


def delta():
    prod, test = ("r", {"env": "prod"}), ("r", {"env": "test"})
    zone = ("r", {"env": "prod", "zone": "z1"})
    stream = Delta()
    stream.subscribe(prod)
    stream.expect("a locator gets the variant that it matches", ["p"])
    stream.subscribe(test, zone, names=["plain"])
    stream.expect("several variants of one name, and a plain name beside", ["p", "t", "x"])
    stream.leads(*prod, "p")
    stream.leads(*zone, "p")
    stream.leads(*test, "t")
    stream.subscribe(("r", {"env": "qa"}), names=["later"])
    stream.expect("what does not exist takes no variant along", [], names=["later"])
    publish(resource("r", "p", PROD), resource("r", "t2", TEST), resource("plain", "x"))
    stream.expect("one variant changes", ["t2"])

    v1 = ("r", {"env": "prod", "version": "v1"})
    v2 = ("r", {"env": "prod", "version": "v2"})
    stream.subscribe(v1, v2)
    stream.expect("a key that the server does not use yet", ["p"])
    old = both(PROD, no(exists("version")))
    publish(
        resource("r", "old", old),
        resource("r", "p1", both(PROD, V1)),
        resource("r", "p2", both(PROD, V2)),
        resource("r", "t2", TEST),
        resource("plain", "x"),
    )
    stream.expect("one variant is replaced by three in one response", ["old", "p1", "p2"], 1)
    for locator, body in [(prod, "old"), (zone, "old"), (v1, "p1"), (v2, "p2"), (test, "t2")]:
        stream.leads(*locator, body)

    stream.unsubscribe(v1)
    publish(
        resource("r", "old", old),
        resource("r", "p1 again", both(PROD, V1)),
        resource("r", "p2 again", both(PROD, V2)),
        resource("r", "t2", TEST),
        resource("plain", "x"),
    )
    stream.expect("a variant that was given up is not heard of", ["p2 again"])
    publish(
        resource("r", "old", old),
        resource("r", "p2 again", both(PROD, V2)),
        resource("plain", "x"),
        resource("single", "s", PROD),
    )
    stream.expect("a variant is removed by its constraints, the name stays", [], 1)
    stream.leads(*test, None)
    stream.leads(*v2, "p2 again")
    versions = {name.name: version for name, version, _ in stream.cache.held.values()}
    asked = [("r", {"env": "prod"}), v2]
    stream.close()

    stream = Delta()
    single = ("single", {"env": "prod"})
    stream.subscribe(single)
    stream.expect("a stream of its own for the version of a single variant", ["s"])
    versions["single"] = stream.cache.held[list(stream.cache.held)[0]][1]
    stream.close()

    stream = Delta()
    stream.subscribe(*asked, single, names=["plain"], held=versions)
    stream.expect(
        "after a reconnect, one version does not speak for two variants, and does for one",
        ["old", "p2 again"],
    )
    publish(resource("plain", "x"), resource("single", "s", PROD))
    stream.expect("the last variants go, and with them the name", [], 2, ["r"])
    publish(resource("plain", "x"), resource("single", "s2", PROD))
    stream.expect("a variant whose version was named changes", ["s2"])
    stream.subscribe(("plain", {"env": "prod"}), ("plain", {"env": "test"}))
    stream.expect("one without constraints is for all", ["x"])
    publish(
        resource("plain", "x of prod", PROD),
        resource("plain", "x of others", no(PROD)),
        resource("single", "s2", PROD),
    )
    stream.expect("variants take the place of the one for all", ["x of prod", "x of others"], 1)
    stream.leads("plain", {"env": "prod"}, "x of prod")
    stream.leads("plain", {"env": "test"}, "x of others")
    stream.close()


class Sotw(Stream):
    def __init__(self):
        super().__init__("StreamAggregatedResources")
        self.cache = Cache()
        self.nonce = self.version = ""

    def ask(self, *asked, names=()):
        self.cache.asked = list(asked) + [(name, {}) for name in names]
        self.names = names
        self.say()

    def say(self):
        request = xds.DiscoveryRequest(
            resource_names=self.names, response_nonce=self.nonce, version_info=self.version
        )
        located = [one for one in self.cache.asked if one[0] not in self.names]
        request.resource_locators.extend(locators(located))
        self.send(request)

    def expect(self, what, variants, plain=()):
        """One response with just these, accepted; a name has what is listed."""
        response = self.receive(what)
        got, bare = [], []
        listed = set()
        for any_body in response.resources:
            if any_body.type_url == RESOURCE:
                wrapped = xds.Resource()
                check(any_body.Unpack(wrapped), "a wrapped resource is readable", response)
                check(
                    wrapped.resource_name.HasField("dynamic_parameter_constraints"),
                    "a variant comes with its constraints",
                    response,
                )
            else:
                wrapped = xds.Resource(resource=any_body)
                route = route_pb2.RouteConfiguration()
                check(any_body.Unpack(route), "the body is of the type", response)
                wrapped.name = route.name
            if wrapped.name not in listed:
                listed.add(wrapped.name)
                for key in [k for k in self.cache.held if k[0] == wrapped.name]:
                    del self.cache.held[key]
            body = self.cache.take(wrapped)
            (got if any_body.type_url == RESOURCE else bare).append(body)
        check(sorted(got) == sorted(variants), f"{what}: the variants {variants}", response)
        check(sorted(bare) == sorted(plain), f"{what}: the others {list(plain)}", response)
        self.cache.check_unambiguous()
        self.nonce, self.version = response.nonce, response.version_info
        self.say()
        done(what)

    leads = Delta.leads


def sotw():
    prod, test = ("r", {"env": "prod"}), ("r", {"env": "test"})
    v1 = ("r", {"env": "prod", "version": "v1"})
    stream = Sotw()
    stream.ask(prod, test, v1, names=["plain"])
    stream.expect("several variants of one name, wrapped, and a plain name", ["p", "t"], ["x"])
    stream.leads(*prod, "p")
    stream.leads(*v1, "p")
    publish(resource("r", "p", PROD), resource("r", "t2", TEST), resource("plain", "x"))
    stream.expect("a name comes with all its variants", ["p", "t2"])
    old = both(PROD, no(exists("version")))
    publish(
        resource("r", "old", old),
        resource("r", "p1", both(PROD, V1)),
        resource("r", "t2", TEST),
        resource("plain", "x"),
    )
    stream.expect("one variant is replaced by two in one response", ["old", "p1", "t2"])
    stream.leads(*prod, "old")
    stream.leads(*v1, "p1")
    publish(resource("r", "p1", both(PROD, V1)), resource("plain", "x2"))
    stream.expect("variants that are not listed are gone", ["p1"], ["x2"])
    stream.leads(*prod, None)
    stream.leads(*v1, "p1")
    stream.close()


PORT, FOLDER, WAY = sys.argv[1:]
{"delta": delta, "sotw": sotw}[WAY]()
print("done", flush=True)
# gRPC's threads may wait for each other for ever when the interpreter ends.
os._exit(0)
