"""Object stores: a file is created on condition that there is none of its name, by a client that can ask so.

pyarrow, which reads and writes everything else there, has no such call.
"""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import urlsplit

from penstock.query.extras import Extra, needed
from penstock.state.files import Create, Folder

#: Kinds of address whose stores put an object only where there is none, in one step, if they are asked to.
SCHEMES = frozenset({"s3", "gs"})


def conditional_put(root: str) -> Create:
    """What creates files in the bucket of an address, with the credentials of the environment.

    The store itself decides who of several writers is the first. Amazon S3, Google Cloud Storage, MinIO and
    Cloudflare R2 decide in one step; of another store find out first.
    """
    with needed(Extra.STORES, f"a checkpoint on {urlsplit(root).scheme}://", "take a local folder"):
        from obstore import put
        from obstore.exceptions import AlreadyExistsError

    store = _bucket(root)

    def create(folder: Folder, name: str, data: Any) -> bool:
        key = f"{folder.path}/{name}".partition("/")[2]  # pyarrow's paths begin with the bucket
        try:
            put(store, key, bytes(data), mode="create")
        except AlreadyExistsError:
            # The answer to a call that did it may get lost, and the call be repeated.
            return bytes(folder.read(name)) == bytes(data)
        return True

    return create


def _bucket(root: str) -> Any:
    from obstore.store import GCSStore, S3Store

    address = urlsplit(root)
    if address.scheme == "gs":
        return GCSStore(address.netloc)
    # The same variable tells pyarrow of a store that is not Amazon's; without TLS only where it says so.
    plain = os.environ.get("AWS_ENDPOINT_URL", "").startswith("http://")
    return S3Store(address.netloc, client_options={"allow_http": plain})
