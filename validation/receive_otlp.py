"""Receives what `lockstep sampled --otlp` pushes, with OpenTelemetry's own messages.

    pip install opentelemetry-proto
    python3 validation/receive_otlp.py &
    lockstep sampled --replay RUN --speed 0 --otlp http://127.0.0.1:4318

Prints where it listens (`--port 0` takes any port), then a line for every point of the first push:
name, unit, kind, value, attributes. Ends with an error if a sum is not cumulative and monotonic, if
a point of a GPU has no `hw.id`, or if bytes are left that the messages do not know.
"""

import argparse
import http.server
import sys

from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
from opentelemetry.proto.metrics.v1 import metrics_pb2

CUMULATIVE = metrics_pb2.AGGREGATION_TEMPORALITY_CUMULATIVE
LARGEST = 64 << 20


def attributes(items):
    return {item.key: item.value.string_value for item in items}


def points(request):
    """Every point of a request with its metric; complains in `faults` of what is wrong."""
    faults = []
    found = []
    if request.SerializeToString() == b"":
        faults.append("the request is empty")
    for resource in request.resource_metrics:
        if "host.name" not in attributes(resource.resource.attributes):
            faults.append("a resource without host.name")
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                kind = metric.WhichOneof("data")
                data = getattr(metric, kind)
                if kind == "sum" and not (
                    data.is_monotonic and data.aggregation_temporality == CUMULATIVE
                ):
                    faults.append(f"{metric.name}: a sum that may fall")
                for point in data.data_points:
                    labels = attributes(point.attributes)
                    if ".gpu." in metric.name and not labels.get("hw.id"):
                        faults.append(f"{metric.name}: a point without hw.id")
                    value = getattr(point, point.WhichOneof("value"))
                    found.append((metric.name, metric.unit, kind, value, labels))
    return found, faults


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        length = int(self.headers.get("Content-Length", 0))
        if self.path != "/v1/metrics" or length > LARGEST:
            self.send_error(404)
            return
        request = metrics_service_pb2.ExportMetricsServiceRequest()
        body = self.rfile.read(length)
        request.ParseFromString(body)
        # Unknown fields would be dropped here, so that the lengths differ.
        request.DiscardUnknownFields()
        self.server.found, self.server.faults = points(request)
        if request.ByteSize() != len(body):
            self.server.faults.append("fields that the messages do not know")
        answer = metrics_service_pb2.ExportMetricsServiceResponse().SerializeToString()
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=4318)
    port = parser.parse_args().port
    server = http.server.HTTPServer(("127.0.0.1", port), Receiver)
    server.found, server.faults = None, []
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    while server.found is None:
        server.handle_request()
    for name, unit, kind, value, labels in server.found:
        print(name, unit, kind, value, labels)
    for fault in server.faults:
        print(f"fault: {fault}", file=sys.stderr)
    return 1 if server.faults or not server.found else 0


if __name__ == "__main__":
    sys.exit(main())
