# SPDX-License-Identifier: Apache-2.0
from collections.abc import Iterable, Iterator
from os import PathLike
from typing import Any, TypedDict

from . import Error

_Path = str | PathLike[str]

_Rows = list[dict[str, Any]]

class ClientError(Error):
    kind: str
    exit_code: int

class Started(TypedDict):
    application: str
    run: int
    state: str

class HasSet(TypedDict):
    application: str
    run: int
    parameter: str
    value: str

class Listed(TypedDict):
    applications: list[dict[str, Any]]
    ended: list[dict[str, Any]]
    left_out: int

class Event(TypedDict):
    number: int
    unix_ns: int
    kind: str
    level: str
    application: str | None
    run: int
    who: str | None
    text: str

class Client:
    def __init__(
        self,
        address: str | None = ...,
        *,
        key_file: _Path | None = ...,
        insecure: bool = ...,
        allow_users: Iterable[str | int] = ...,
        fragctl: str = ...,
    ) -> None: ...
    # A summary with wait=True, else Started.
    def start(
        self,
        graph: _Path,
        args: Iterable[str] = ...,
        *,
        name: str | None = ...,
        configs: Iterable[_Path] = ...,
        sets: Iterable[str] = ...,
        library_path: str | None = ...,
        start_timeout: str | None = ...,
        timeout: str | None = ...,
        wait: bool = ...,
    ) -> dict[str, Any]: ...
    def stop(
        self, name: str | None = ..., *, all: bool = ..., now: bool = ..., timeout: str | None = ...
    ) -> Started: ...
    def restart(self, name: str, *, now: bool = ..., timeout: str | None = ...) -> Started: ...
    def list(self) -> Listed: ...
    def status(self, name: str | None = ..., *, measure: bool = ...) -> dict[str, Any]: ...
    def set(self, name: str, parameter: str, value: str | float | bool) -> HasSet: ...
    def workers(self) -> _Rows: ...
    def events(
        self,
        *,
        follow: bool = ...,
        since: str | None = ...,
        level: str | None = ...,
        operator: str | None = ...,
    ) -> Iterator[Event]: ...
