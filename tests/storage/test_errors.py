import pytest
from boto3.exceptions import S3UploadFailedError
from botocore.exceptions import ClientError, EndpointConnectionError, ReadTimeoutError

from storage import MissingFileError, SchemaError, StoreError, is_transient


def answered(code: int) -> ClientError:
    return ClientError({"Error": {"Code": "X"}, "ResponseMetadata": {"HTTPStatusCode": code}}, "GetObject")  # type: ignore[typeddict-item]


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


def while_handling(error: Exception, other: Exception) -> Exception:
    error.__context__ = other
    return error


@pytest.mark.parametrize(
    "error",
    [
        ConnectionResetError("reset"),
        TimeoutError(),
        answered(503),
        answered(429),
        EndpointConnectionError(endpoint_url="http://127.0.0.1:1"),
        ReadTimeoutError(endpoint_url="http://127.0.0.1:1"),
        caused(StoreError("object x: S3 answered 500"), answered(500)),
        caused(StoreError("table x: could not commit"), OSError("Generic S3 error: error sending request for url")),
        caused(MissingFileError("a file cannot be read"), OSError("AWS Error NETWORK_CONNECTION during HeadObject")),
        caused(RuntimeError("a stage"), ConnectionRefusedError()),
        while_handling(S3UploadFailedError("failed to upload"), answered(503)),
    ],
)
def test_what_passes_is_tried_again(error: Exception) -> None:
    assert is_transient(error)


@pytest.mark.parametrize(
    "error",
    [
        ValueError("gamma is 7"),
        SchemaError("a column is missing"),
        MissingFileError("object x does not exist"),
        answered(403),
        answered(404),
        caused(StoreError("object x: S3 answered 403"), answered(403)),
        OSError("No space left on device"),
        FileNotFoundError("weights.pth"),
        RuntimeError("CUDA out of memory"),
        None,
    ],
)
def test_what_stays_is_not(error: Exception | None) -> None:
    assert not is_transient(error)
