"""An object store on loopback: moto's S3, which honours `If-Match` and `If-None-Match`, and faults on demand."""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import boto3
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

from eval_pipeline_plugins.bucket import conditions

KEY, SECRET = "AKIAEXAMPLE", "s3cr3t/of+the/bucket"
Request = tuple[str, str]
_CONDITIONS = ("HTTP_IF_NONE_MATCH", "HTTP_IF_MATCH")


class _Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log(self, type: str, message: str, *args: Any) -> None:
        """Says nothing."""


class BucketServer:
    """A server with empty buckets.

    Attributes:
        log: method and path of each request.
        before: called with each request before it is answered; it may wait. If it returns true, the request has been
            cut off and nothing happens.
        failing: the status with which every request is answered, if any.
        careless: how it treats the conditions of a write: it ignores them ("always"), or looks at them when the request
            comes, and writes when all writers of `objects.conditions` have come ("early").
    """

    def __init__(self) -> None:
        self.log: list[Request] = []
        self.before: Callable[[Request], object] = lambda request: None
        self.failing = self.careless = ""
        self._writing = threading.Lock()
        self._looked = threading.Barrier(conditions._WRITERS)
        self._app = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True, request_handler=_Quiet)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.client = boto3.client(
            "s3", endpoint_url=self.url, aws_access_key_id=KEY, aws_secret_access_key=SECRET, region_name="us-east-1"
        )

    def _answer(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        request = (environ["REQUEST_METHOD"], environ["PATH_INFO"])
        if "HTTP_AUTHORIZATION" in environ:
            self.log.append(request)
        failing = self.failing or ("500 Cut Off" if self.before(request) else "")
        if failing:
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            start_response(failing, [("Content-Length", "0")])
            return [b""]
        if request[0] != "PUT":
            return self._said(environ, start_response)
        if self.careless == "always" or (self.careless == "early" and self._may_write(environ)):
            if self.careless == "early":
                self._looked.wait(60)
            for condition in _CONDITIONS:
                environ.pop(condition, None)
        with self._writing:  # moto does not look and write in one
            return self._said(environ, start_response)

    def _said(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        found: Iterable[bytes] = self._app(environ, start_response)
        return found

    def _may_write(self, environ: dict[str, Any]) -> bool:
        """Whether the object is now as the request says."""
        _, bucket, name = environ["PATH_INFO"].split("/", 2)
        etags = {
            f"{one['Key']} {one['ETag']}" for one in self.client.list_objects_v2(Bucket=bucket).get("Contents", ())
        }
        if "HTTP_IF_NONE_MATCH" in environ:
            return not any(one.startswith(f"{name} ") for one in etags)
        return f"{name} {environ.get('HTTP_IF_MATCH')}" in etags

    def objects(self, bucket: str) -> dict[str, bytes]:
        """The contents of a bucket by name."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=bucket)
        names = [found["Key"] for page in pages for found in page.get("Contents", ())]
        return {name: self.client.get_object(Bucket=bucket, Key=name)["Body"].read() for name in names}

    def flip(self, bucket: str, name: str, place: int = 40) -> None:
        """Flips a bit of an object."""
        data = bytearray(self.client.get_object(Bucket=bucket, Key=name)["Body"].read())
        data[place] ^= 1
        self.client.put_object(Bucket=bucket, Key=name, Body=bytes(data))

    def stop(self) -> None:
        """Ends it."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@contextmanager
def bucket_server() -> Iterator[BucketServer]:
    """A server that ends with the block."""
    server = BucketServer()
    try:
        yield server
    finally:
        server.stop()
