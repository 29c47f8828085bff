"""An S3 bucket in a process of its own, in memory, whose writes take a given time: object storage to measure on.

As much of S3 as an object store client needs: PUT (also conditional), GET (also of ranges), HEAD, DELETE, lists,
deletion of several, uploads in parts. No signatures are checked and nothing is kept.
"""

import asyncio
import hashlib
import multiprocessing
import urllib.parse
from xml.sax.saxutils import escape, unescape

LAST_MODIFIED = "Thu, 01 Jan 2026 00:00:00 GMT"
LISTED_AT = "2026-01-01T00:00:00.000Z"
KEYS_OF_A_LIST_MAX = 1000


class Bucket:
    """The objects by key, and what is asked of them."""

    def __init__(self, write_seconds):
        self.write_seconds = write_seconds
        self.objects = {}
        self.uploads = {}
        self.writes = 0

    async def answer(self, method, target, headers, body):
        """Status, headers and body of the answer to one request."""
        path, _, query = target.partition("?")
        parameters = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        key = urllib.parse.unquote(path).lstrip("/").partition("/")[2]
        if method in ("PUT", "POST", "DELETE"):
            self.writes += 1
            await asyncio.sleep(self.write_seconds)
        if method == "PUT":
            return self.put(key, parameters, headers, body)
        if method == "POST":
            return self.post(key, parameters, body)
        if method == "DELETE":
            self.objects.pop(key, None)
            return 204, {}, b""
        if not key:
            return self.listed(parameters)
        return self.get(key, headers, method == "HEAD")

    def put(self, key, parameters, headers, body):
        """Stores an object, if its condition holds, or a part of one."""
        if "uploadId" in parameters:
            self.uploads[parameters["uploadId"]][int(parameters["partNumber"])] = body
            return 200, {"ETag": '"part"'}, b""
        stored = self.objects.get(key)
        if headers.get("if-none-match") == "*" and stored is not None:
            return 412, {}, error("PreconditionFailed")
        wanted = headers.get("if-match")
        if wanted is not None and (stored is None or stored[1] != wanted):
            return 412, {}, error("PreconditionFailed")
        return 200, {"ETag": self.store(key, body)}, b""

    def store(self, key, body):
        """Stores an object; its ETag."""
        etag = f'"{hashlib.md5(body).hexdigest()}-{self.writes}"'
        self.objects[key] = (body, etag)
        return etag

    def post(self, key, parameters, body):
        """Deletes several objects, or begins or ends an upload in parts."""
        if "delete" in parameters:
            keys = [part.split("</Key>")[0] for part in body.decode().split("<Key>")[1:]]
            for key in keys:
                self.objects.pop(unescape(key), None)
            deleted = "".join(f"<Deleted><Key>{key}</Key></Deleted>" for key in keys)
            return 200, {}, f'<?xml version="1.0"?><DeleteResult>{deleted}</DeleteResult>'.encode()
        if "uploads" in parameters:
            upload = str(self.writes)
            self.uploads[upload] = {}
            return 200, {}, f"<InitiateMultipartUploadResult><UploadId>{upload}</UploadId></InitiateMultipartUploadResult>".encode()
        parts = self.uploads.pop(parameters["uploadId"])
        etag = self.store(key, b"".join(parts[number] for number in sorted(parts)))
        return 200, {}, f"<CompleteMultipartUploadResult><ETag>{escape(etag)}</ETag></CompleteMultipartUploadResult>".encode()

    def get(self, key, headers, head_only):
        """An object or a range of it."""
        if key not in self.objects:
            return 404, {}, error("NoSuchKey")
        body, etag = self.objects[key]
        answer = {"ETag": etag, "Last-Modified": LAST_MODIFIED}
        wanted = headers.get("range")
        if wanted is None:
            if head_only:
                return 200, {**answer, "Content-Length": str(len(body))}, None
            return 200, answer, body
        first, _, last = wanted.removeprefix("bytes=").partition("-")
        start = int(first) if first else max(0, len(body) - int(last))
        end = min(int(last) + 1, len(body)) if first and last else len(body)
        if start >= len(body):
            return 416, {}, error("InvalidRange")
        answer["Content-Range"] = f"bytes {start}-{end - 1}/{len(body)}"
        return 206, answer, body[start:end]

    def listed(self, parameters):
        """The keys below a prefix, folders drawn together where a delimiter is given."""
        prefix, delimiter = parameters.get("prefix", ""), parameters.get("delimiter", "")
        after = parameters.get("continuation-token") or parameters.get("start-after") or ""
        contents, folders = [], []
        for key in sorted(key for key in self.objects if key.startswith(prefix) and key > after):
            rest = key[len(prefix) :]
            if delimiter and delimiter in rest:
                folder = prefix + rest.split(delimiter)[0] + delimiter
                if folder not in folders:
                    folders.append(folder)
                continue
            contents.append(key)
        more = len(contents) > KEYS_OF_A_LIST_MAX
        contents = contents[:KEYS_OF_A_LIST_MAX]
        xml = ['<?xml version="1.0"?><ListBucketResult>', f"<IsTruncated>{str(more).lower()}</IsTruncated>"]
        if more:
            xml.append(f"<NextContinuationToken>{escape(contents[-1])}</NextContinuationToken>")
        for key in contents:
            body, etag = self.objects[key]
            xml.append(
                f"<Contents><Key>{escape(key)}</Key><LastModified>{LISTED_AT}</LastModified>"
                f"<ETag>{escape(etag)}</ETag><Size>{len(body)}</Size></Contents>"
            )
        xml += [f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>" for folder in folders]
        return 200, {"Content-Type": "application/xml"}, "".join(xml + ["</ListBucketResult>"]).encode()


def error(code):
    """The body of a refusal."""
    return f'<?xml version="1.0"?><Error><Code>{code}</Code><Message>{code}</Message></Error>'.encode()


async def converse(bucket, reader, writer):
    """Answers the requests of one connection, one after the other."""
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            method, target, _ = head[0].split(" ", 2)
            headers = {}
            for line in head[1:]:
                name, _, value = line.partition(":")
                headers[name.strip().lower()] = value.strip()
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            status, answer, content = await bucket.answer(method, target, headers, body)
            if content is not None:
                answer = {**answer, "Content-Length": str(len(content))}
            lines = [f"HTTP/1.1 {status} X"] + [f"{name}: {value}" for name, value in answer.items()]
            keeps_body = content if method != "HEAD" and content else b""
            writer.write("\r\n".join(lines + ["", ""]).encode("latin-1") + keeps_body)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def serve(write_seconds, ready):
    """Listens on a free port and says which."""
    bucket = Bucket(write_seconds)
    server = await asyncio.start_server(lambda r, w: converse(bucket, r, w), "127.0.0.1", 0)
    ready.send(server.sockets[0].getsockname()[1])
    async with server:
        await server.serve_forever()


def run(write_seconds, ready):
    """The process."""
    asyncio.run(serve(write_seconds, ready))


class SlowBucket:
    """A bucket that runs, and what a client needs in its environment to use it."""

    def __init__(self, write_seconds):
        receive, send = multiprocessing.Pipe(duplex=False)
        self.process = multiprocessing.Process(target=run, args=(write_seconds, send), daemon=True)
        self.process.start()
        port = receive.recv()
        self.environment = {
            "AWS_ENDPOINT": f"http://127.0.0.1:{port}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "bench",
            "AWS_SECRET_ACCESS_KEY": "bench",
        }

    def stop(self):
        """Ends it, with all that is in it."""
        self.process.terminate()
        self.process.join()
