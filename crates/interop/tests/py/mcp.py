"""A source or a sink of the Mesh Configuration Protocol, that listens or dials.

    mcp.py PROTO sink|source listen
    mcp.py PROTO sink|source dial ADDRESS

The messages are made from the text of PROTO. A sink asks for the collection A
and rejects a resource whose name has `bad` in it; a source sends the exchange
below, a step after each answer. Both print what they receive.
"""

import queue
import re
import sys
from concurrent import futures

import grpc
from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, message_factory
# What PROTO imports is in the pool once it is imported here.
from google.protobuf import timestamp_pb2
from google.rpc import status_pb2

Field = descriptor_pb2.FieldDescriptorProto
FIELD = re.compile(r"(repeated )?(map<string, string>|[\w.]+) (\w+) = (\d+);")
SCALARS = {"string": Field.TYPE_STRING, "bool": Field.TYPE_BOOL}


def load(path):
    """The messages of a file, which has a line for each field."""
    text = open(path).read()
    package = re.search(r"package ([\w.]+);", text)[1]
    file = descriptor_pb2.FileDescriptorProto(
        name="mcp.proto",
        package=package,
        syntax="proto3",
        dependency=re.findall(r'import "(.+)";', text),
    )
    for name, body in re.findall(r"^message (\w+) {(.*?)^}", text, re.M | re.S):
        message = file.message_type.add(name=name)
        for repeated, kind, field_name, number in FIELD.findall(body):
            field = message.field.add(name=field_name, number=int(number))
            field.label = Field.LABEL_REPEATED if repeated else Field.LABEL_OPTIONAL
            if kind in SCALARS:
                field.type = SCALARS[kind]
                continue
            field.type = Field.TYPE_MESSAGE
            if kind.startswith("map"):
                camel = "".join(part.capitalize() for part in field_name.split("_"))
                entry = message.nested_type.add(name=camel + "Entry")
                entry.options.map_entry = True
                for at, part in enumerate(("key", "value"), 1):
                    entry.field.add(
                        name=part, number=at, type=Field.TYPE_STRING, label=Field.LABEL_OPTIONAL
                    )
                field.label = Field.LABEL_REPEATED
                field.type_name = f".{package}.{name}.{entry.name}"
            else:
                field.type_name = "." + (kind if "." in kind else f"{package}.{kind}")
    pool = descriptor_pool.Default()
    pool.Add(file)
    find = lambda name: message_factory.GetMessageClass(
        pool.FindMessageTypeByName(f"{package}.{name}")
    )
    return package, find


PACKAGE, find = load(sys.argv[1])
Request, Resources = find("RequestResources"), find("Resources")


def sink(responses):
    """Yields the requests of a sink."""
    yield Request(sink_node={"id": "python"}, collection="A", incremental=True)
    for response in responses:
        names = [f"{r.metadata.name}@{r.body.value.decode()}" for r in response.resources]
        names += [f"-{name}" for name in response.removed_resources]
        form = "incremental" if response.incremental else "full"
        print("received", response.nonce, form, *sorted(names), flush=True)
        answer = Request(
            collection=response.collection, response_nonce=response.nonce, incremental=True
        )
        for name in names:
            if "bad" in name:
                answer.error_detail.code = 3
                answer.error_detail.message = f"{name}: rejected"
        yield answer


STEPS = [
    (False, {"ns/foo": "v0", "ns/bar": "v0"}, []),
    (True, {"ns/baz": "v0"}, []),
    (True, {"ns/bar": "v1"}, ["ns/foo"]),
    (True, {"ns/bad": "v0"}, []),
    (False, {"ns/last": "v0"}, ["ns/ignored"]),
]


def source(requests):
    """Yields the responses of a source."""
    for nonce, (incremental, listed, removed) in enumerate(STEPS, 1):
        show(next(requests))
        response = Resources(
            collection="A", nonce=str(nonce), incremental=incremental, removed_resources=removed
        )
        for name, version in listed.items():
            resource = response.resources.add()
            resource.metadata.name, resource.metadata.version = name, version
            resource.metadata.create_time.seconds = 1500000000
            resource.body.CopyFrom(any_pb2.Any(type_url="t/T", value=version.encode()))
        yield response
    for request in requests:
        show(request)


def show(request):
    error = request.error_detail.message if request.HasField("error_detail") else "ACK"
    what = error if request.response_nonce else f"first {request.collection}"
    print("asked", request.response_nonce or "-", what, flush=True)


def main():
    role, direction = sys.argv[2], sys.argv[3]
    serves = {"sink": "ResourceSink", "source": "ResourceSource"}
    dials = {"sink": "ResourceSource", "source": "ResourceSink"}
    talk = {"sink": sink, "source": source}[role]
    received, sent = (Resources, Request) if role == "sink" else (Request, Resources)
    if direction == "dial":
        path = f"/{PACKAGE}.{dials[role]}/EstablishResourceStream"
        channel = grpc.insecure_channel(sys.argv[4])
        open_stream = channel.stream_stream(
            path, request_serializer=sent.SerializeToString, response_deserializer=received.FromString
        )
        out = queue.Queue()
        for message in talk(open_stream(iter(out.get, None))):
            out.put(message)
        return
    handler = grpc.stream_stream_rpc_method_handler(
        lambda messages, _: talk(messages),
        request_deserializer=received.FromString,
        response_serializer=sent.SerializeToString,
    )
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=2))
    methods = {"EstablishResourceStream": handler}
    service = grpc.method_handlers_generic_handler(f"{PACKAGE}.{serves[role]}", methods)
    server.add_generic_rpc_handlers((service,))
    print("port", server.add_insecure_port("127.0.0.1:0"), flush=True)
    server.start()
    server.wait_for_termination()


main()
