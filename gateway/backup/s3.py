"""Backups in an S3-compatible store."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError, IncompleteReadError, SSLError
from botocore.exceptions import ConnectionError as NoConnection

from gateway.backup.destinations import SUFFIX, expect_same, sha256_of
from gateway.backup.faults import PlaceFailed, PlaceRefuses, PlaceUnreachable, fault_here
from gateway.domain.errors import ConfigError, GatewayError
from gateway.site.backup_section import S3Address

_PIECE = 1024 * 1024
_LARGEST = 5 * 1024**3
"""One request carries no more. An object of one request is there whole or not at all."""
_REFUSED = {
    "InvalidAccessKeyId": "does not know the access key: check [backup] access_key",
    "SignatureDoesNotMatch": "refused the signature: check [backup] secret_key",
    "AccessDenied": "does not permit this: the key needs to list, read, write and delete in this bucket",
    "NoSuchBucket": "has no such bucket: check [backup] target and endpoint",
    "NoSuchKey": "has no such backup",
    "404": "has no such backup",
    "RequestTimeTooSkewed": "has another time than this box: check that both reach a time server",
    "AuthorizationHeaderMalformed": "is in another region: check [backup] region",
}
_BUSY = frozenset({"SlowDown", "ServiceUnavailable", "503"})
_ALONE: dict[str, tuple[None, None, None, None]] = dict.fromkeys(("config_file", "profile"), (None, None, None, None))
"""Settings of the AWS tools on this machine play no part."""


class S3Place:
    """A prefix in a bucket.

    A backup is uploaded by one request, which the store takes whole or not at all, under its SHA-256. It is then read
    back, and deleted again if it is not the same.
    """

    def __init__(
        self,
        address: S3Address,
        *,
        endpoint: str | None,
        region: str,
        access_key: str,
        secret_key: str,
        ca_file: str | None,
        silent_seconds: float = 60.0,
        attempts: int = 5,
    ) -> None:
        """`silent_seconds`: how long the store may be silent. `attempts`: at each request while it fails or is busy."""
        self._bucket = address.bucket
        self._prefix = f"{address.prefix}/" if address.prefix else ""
        try:
            self._client: Any = botocore.session.Session(session_vars=_ALONE).create_client(
                "s3",
                region_name=region,
                endpoint_url=endpoint,
                aws_access_key_id=access_key,
                aws_secret_access_key=secret_key,
                verify=ca_file or True,
                config=Config(
                    ignore_configured_endpoint_urls=True,
                    connect_timeout=30,
                    read_timeout=silent_seconds,
                    retries={"mode": "standard", "total_max_attempts": attempts},
                    request_checksum_calculation="when_required",  # stores other than Amazon's lack the newer ones
                    response_checksum_validation="when_required",
                    s3={"addressing_style": "path" if endpoint else "auto", "payload_signing_enabled": True},
                ),
            )
        except (BotoCoreError, ValueError) as error:
            raise ConfigError("[backup] endpoint or region does not fit an S3 store") from error

    def put(self, file: Path, name: str) -> None:
        """Upload a file and compare it."""
        size, digest = file.stat().st_size, sha256_of(file)
        if size > _LARGEST:
            raise ConfigError(
                "the backup is larger than the 5 GiB that an S3 store takes at once: use SFTP or a folder"
            )
        with _told():
            if name in self.names():
                raise ConfigError(f"{name} is there already; name another file")
            try:
                with file.open("rb") as body:
                    self._client.put_object(
                        Bucket=self._bucket,
                        Key=self._prefix + name,
                        Body=body,
                        ContentLength=size,
                        ContentMD5=_md5(file),
                        Metadata={"sha256": digest},
                    )
                expect_same(self._read(name, None), (size, digest), "S3 store")
            except BaseException:  # whatever ends it: what was not compared does not stay if it can go
                with suppress(GatewayError):
                    self.delete(name)
                raise

    def get(self, name: str, into: Path) -> None:
        """Download a file."""
        with _told():
            self._read(name, into)

    def names(self) -> list[str]:
        """Return the names of the backups there, the oldest first."""
        with _told():
            pages = self._client.get_paginator("list_objects_v2").paginate(
                Bucket=self._bucket, Prefix=self._prefix, Delimiter="/"
            )
            found = [row["Key"].removeprefix(self._prefix) for page in pages for row in page.get("Contents", ())]
        return sorted(name for name in found if name.endswith(SUFFIX))

    def delete(self, name: str) -> None:
        """Delete a backup."""
        with _told():
            self._client.delete_object(Bucket=self._bucket, Key=self._prefix + name)

    def _read(self, name: str, into: Path | None) -> tuple[int, str]:
        body = self._client.get_object(Bucket=self._bucket, Key=self._prefix + name)["Body"]
        digest, size = hashlib.sha256(), 0
        target = None if into is None else into.open("xb")
        try:
            for piece in body.iter_chunks(_PIECE):
                size += len(piece)
                digest.update(piece)
                if target is not None:
                    target.write(piece)
        finally:
            body.close()
            if target is not None:
                target.close()
        return size, digest.hexdigest()


def _md5(file: Path) -> str:
    """Return the header by which every S3 store refuses a body that was damaged on its way."""
    with file.open("rb") as content:
        digest = hashlib.file_digest(content, lambda: hashlib.md5(usedforsecurity=False))
    return base64.b64encode(digest.digest()).decode("ascii")


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except ClientError as error:
        code = str(error.response.get("Error", {}).get("Code", ""))
        if code in _REFUSED:
            raise PlaceRefuses(f"the S3 store {_REFUSED[code]}") from error
        fault = "is busy" if code in _BUSY else f"answered {code or 'with an error'}"
        raise PlaceFailed(f"the S3 store {fault}: try again later") from error
    except SSLError as error:
        raise PlaceRefuses(
            "the S3 store shows no certificate of a known authority: name the file of its authority in [backup] ca_file"
        ) from error
    except (HTTPClientError, NoConnection, IncompleteReadError) as error:
        raise PlaceUnreachable(
            "the line to the S3 store broke, or it did not answer in time: check the network and [backup] endpoint"
        ) from error
    except BotoCoreError as error:
        raise PlaceFailed("the answer of the S3 store is broken or cannot be understood: try again later") from error
    except OSError as error:  # the library has its own for the line
        raise fault_here(error) from error
