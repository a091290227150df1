from __future__ import annotations

import hashlib
import random
import re
from email.parser import BytesParser
from email.policy import HTTP

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gateway.errors import MalformedRequest
from gateway.wire.multipart import FIELD_BYTES, HEADER_BYTES, MAX_PARTS, Part, form, with_fields
from gateway.wire.part_header import parameters
from tests.wire.test_speed import best_seconds

TYPE = "multipart/form-data; boundary=b0undary"
FILE = b"RIFF\r\n--b0undar\r\n\r\n--b0undaryX\r\n--B0undary\r\n--b0undary-\nx--b0undary\r\n\r\n--\r\n\x00\xff\r\n"


def field(name: str, value: bytes, boundary: bytes = b"b0undary") -> bytes:
    return b"--" + boundary + f'\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'.encode() + value + b"\r\n"


def file(name: str, value: bytes, boundary: bytes = b"b0undary") -> bytes:
    head = f'\r\nContent-Disposition: form-data; name="{name}"; filename="a.wav"\r\nContent-Type: audio/wav\r\n\r\n'
    return b"--" + boundary + head.encode() + value + b"\r\n"


END = b"--b0undary--\r\n"


def by_email(body: bytes, content_type: str) -> list[tuple[str | None, bytes]]:
    """The same form as the standard library reads it."""
    message = BytesParser(policy=HTTP).parsebytes(b"Content-Type: " + content_type.encode() + b"\r\n\r\n" + body)
    return [
        (part.get_param("name", header="content-disposition"), part.get_payload(decode=True))
        for part in message.iter_parts()
    ]


def refused(body: bytes, content_type: str = TYPE) -> MalformedRequest:
    with pytest.raises(MalformedRequest) as caught:
        form(body, content_type)
    assert caught.value.status == 400
    return caught.value


@pytest.mark.parametrize("model_first", [True, False], ids=["model-first", "model-last"])
def test_b2_only_the_model_changes(model_first: bool) -> None:
    content = FILE + random.Random(3).randbytes(5_000_000) + FILE
    parts = [field("model", b"whisper"), file("file", content)]
    body = b"".join([*(parts if model_first else parts[::-1]), field("language", b"de"), END])
    found = form(body, TYPE)
    pieces = with_fields(body, found, {"model": "org/whisper-v3"})
    sent = b"".join(pieces)
    assert sent == body.replace(b"\r\n\r\nwhisper\r\n", b"\r\n\r\norg/whisper-v3\r\n")
    (audio,) = form(sent, TYPE).files
    assert hashlib.sha256(sent[audio.start : audio.end]).digest() == hashlib.sha256(content).digest()
    # The file goes on from where it lies.
    assert sum(len(piece) for piece in pieces if not isinstance(piece, memoryview)) == len("org/whisper-v3")


def test_the_parts_of_a_form() -> None:
    body = field("model", b"w") + file("file", FILE) + field("include[]", b"a") + field("include[]", b"") + END
    found = form(body, TYPE)
    assert [(part.name, part.text) for part in found.parts] == [
        ("model", "w"),
        ("file", None),
        ("include[]", "a"),
        ("include[]", ""),
    ]
    (audio,) = found.files
    assert (audio.filename, audio.size, body[audio.start : audio.end]) == ("a.wav", len(FILE), FILE)
    assert (found.value("model"), found.value("absent"), found.part("file")) == ("w", None, audio)
    assert form(END, TYPE).parts == ()


def test_a_name_that_comes_twice_is_refused_when_it_is_read() -> None:
    body = field("model", b"a") + file("file", b"x") + field("model", b"b") + END
    found = form(body, TYPE)
    for read in (
        lambda: found.value("model"),
        lambda: found.part("model"),
        lambda: with_fields(body, found, {"model": "c"}),
    ):
        with pytest.raises(MalformedRequest) as caught:
            read()
        assert (caught.value.code, caught.value.param) == ("duplicate_member", "model")


def test_a_field_that_is_a_file_is_refused_when_it_is_read() -> None:
    found = form(file("model", b"whisper") + END, TYPE)
    with pytest.raises(MalformedRequest) as caught:
        found.value("model")
    assert caught.value.param == "model"


@pytest.mark.parametrize(
    ("disposition", "name", "filename"),
    [
        (b'form-data; name="model"', "model", None),
        (b"form-data; name=model", "model", None),
        (b"Form-Data;name=model;", "model", None),
        (b'form-data ; name = "model" ; filename = x.wav', "model", "x.wav"),
        ('form-data; name="é"; filename="你.wav"'.encode(), "é", "你.wav"),
        (b"form-data; name=\"x\"; filename*=UTF-8''%e4.wav", "x", "UTF-8''%e4.wav"),
        (b'form-data; name="x"; filename="C:\\dir\\a;b=c.wav"', "x", "C:\\dir\\a;b=c.wav"),
        (b'form-data; name=""', "", None),
        (b'form-data; name=""; filename=""', "", ""),
    ],
)
def test_how_names_are_written(disposition: bytes, name: str, filename: str | None) -> None:
    (part,) = form(b"--b0undary\r\ncontent-disposition:" + disposition + b"\r\n\r\nv\r\n" + END, TYPE).parts
    assert (part.name, part.filename) == (name, filename)


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"Content-Type: text/plain",
        b"Content-Disposition: attachment; name=model",
        b"Content-Disposition: form-data",
        b"Content-Disposition: form-data; filename=x",
        b"Content-Disposition: form-data; name=a; name=b",
        b"Content-Disposition: form-data; name=a; NAME=b",
        b"Content-Disposition: form-data; name=a; name*=utf-8''b",
        b"Content-Disposition: form-data; name*=utf-16''b",
        b"Content-Disposition: form-data; name*=b",
        b"Content-Disposition: form-data; name*0=mod; name*1=el",
        b'Content-Disposition: form-data; name="model',
        b'Content-Disposition: form-data; name="a" b',
        b"Content-Disposition: form-data; name=a b",
        b"Content-Disposition: form-data; name=a\r\nContent-Disposition: form-data; name=b",
        b"Content-Disposition: form-data;\r\n name=model",
        b"Content-Disposition: form-data; name=a\nX: y",
        b"Content-Disposition: form-data; name=a\0",
        b"Content-Disposition : form-data; name=a",
        b"Content-Disposition: form-data; name=a\r\nContent-Transfer-Encoding: base64",
        b"no colon",
        b'; filename=xContent-Disposition: form-data; name="model"',
        b'X Y: z\r\nContent-Disposition: form-data; name="model"',
        b'X\xe9: z\r\nContent-Disposition: form-data; name="model"',
        b'X(: z\r\nContent-Disposition: form-data; name="model"',
        b'"X": z\r\nContent-Disposition: form-data; name="model"',
        b'Content-Disposition: form-data; name="mod\\el"',
        b'Content-Disposition: form-data; name="model\\\\"',
        b'Content-Disposition: form-data; name="mod%65l"',
        b"Content-Disposition: form-data; name=mod\\el",
        b"Content-Disposition: form-data; name*=utf-8''mod%65l",
        b'Content-Disposition: form-data; filename="a\\"; name=\\"model"; name="x"',
        b'Content-Disposition: form-data; name="x"; filename="a\\"b"',
        b'Content-Disposition: form-data; name="x"; filename="a\\\\"',
    ],
)
def test_headers_that_can_be_read_in_two_ways(header: bytes) -> None:
    refused(b"--b0undary\r\n" + header + b"\r\n\r\nv\r\n" + END)


@pytest.mark.parametrize(
    "content_type",
    [
        'multipart/form-data; boundary="b0undary"',
        "Multipart/Form-Data;boundary=b0undary;charset=utf-8",
        "multipart/form-data; charset=utf-8; BOUNDARY=b0undary",
    ],
)
def test_how_boundaries_are_written(content_type: str) -> None:
    assert form(field("model", b"w") + END, content_type).value("model") == "w"


def test_a_boundary_with_special_characters() -> None:
    boundary = b"=_a.b(c)+d?e:f/g,h'i-"
    body = field("model", b"w", boundary) + file("file", FILE, boundary) + b"--" + boundary + b"--"
    found = form(body, f'multipart/form-data; boundary="{boundary.decode()}"')
    assert (found.value("model"), found.files[0].size) == ("w", len(FILE))


@pytest.mark.parametrize(
    "content_type",
    [
        "",
        "application/json",
        "multipart/mixed; boundary=b0undary",
        "multipart/form-data",
        "multipart/form-data; boundary=",
        'multipart/form-data; boundary=""',
        'multipart/form-data; boundary="b0undary',
        "multipart/form-data; boundary=b0undary; boundary=b",
        'multipart/form-data; boundary="b0undary "',
        'multipart/form-data; boundary="a\r\nb"',
        "multipart/form-data; boundary=bé",
        "multipart/form-data; boundary=" + "b" * 71,
        "multipart/form-data; boundary=other",
    ],
)
def test_content_types_that_are_none(content_type: str) -> None:
    refused(field("model", b"w") + END, content_type)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"--b0undary",
        b"--b0undary\r\n",
        b"junk\r\n" + field("model", b"w") + END,
        field("model", b"w"),
        field("model", b"w") + b"--b0undary",
        field("model", b"w") + b"--b0undary-",
        field("model", b"w") + b"--b0undary\r\n",
        field("model", b"w") + END + field("model", b"x") + END,
        field("model", b"w") + b"--b0undary \r\n" + field("model", b"x") + END,
        field("model", b"w") + b"--b0undary\t--",
        field("model", b"w\n--b0undary\r\n") + END,
        field("model", b"w\r--b0undary\r\n") + END,
        field("model", b"w\r\n--b0undary\n") + END,
        field("model", b"w\n--b0undary--") + END,
        (field("model", b"w") + END).replace(b"\r\n", b"\n"),
        b'--b0undary\r\nContent-Disposition: form-data; name="model"\r\n\r\n' + END,
        field("model", b"\xff") + END,
        b'{"model":"w"}',
    ],
)
def test_bodies_that_are_no_form(body: bytes) -> None:
    refused(body)


def test_limits() -> None:
    assert len(form(field("a", b"b") * MAX_PARTS + END, TYPE).parts) == MAX_PARTS
    assert refused(field("a", b"b") * (MAX_PARTS + 1) + END).code == "too_many_members"
    refused(field("a" * HEADER_BYTES, b"b") + END)
    assert form(field("a", b"b" * FIELD_BYTES) + END, TYPE).parts[0].size == FIELD_BYTES
    assert refused(field("a", b"b" * (FIELD_BYTES + 1)) + END).param == "a"
    assert form(file("a", b"b" * (FIELD_BYTES + 1)) + END, TYPE).files[0].size == FIELD_BYTES + 1


def test_every_cut_body_is_refused() -> None:
    body = field("model", b"w") + file("file", FILE) + END
    for at in range(len(body) - 2):  # its last line end may lack
        refused(body[:at])
    assert form(body[:-2], TYPE) == form(body, TYPE)


def test_fields_are_added_and_removed() -> None:
    body = file("file", FILE) + field("api_base", b"http://x") + field("language", b"de") + END
    sent = b"".join(with_fields(body, form(body, TYPE), {"model": "w", "api_base": None, "absent": None}))
    assert sent == field("model", b"w") + file("file", FILE) + field("language", b"de") + END
    assert b"".join(with_fields(body, form(body, TYPE), {})) == body
    only = field("model", b"w") + END
    assert b"".join(with_fields(only, form(only, TYPE), {"model": None})) == END
    assert b"".join(with_fields(only, form(only, TYPE), {"model": ""})) == field("model", b"") + END


@pytest.mark.parametrize("value", ["--b0undary", "--b0undary--", "a\r\n--b0undary--", "--b0undaryX", "a\n--b0undary"])
def test_a_value_never_reads_as_the_boundary(value: str) -> None:
    body = field("model", b"w") + END
    with pytest.raises(MalformedRequest):
        with_fields(body, form(body, TYPE), {"model": value})
    with pytest.raises(MalformedRequest):
        with_fields(body, form(body, TYPE), {"other": value})


contents = st.one_of(
    st.binary(max_size=30),
    st.lists(
        st.sampled_from([b"\r\n", b"--", b"b0undary", b"--b0undary", b"-", b"x", b"\r", b"\n", b"\0"]), max_size=8
    ).map(b"".join),
)


def unlike_a_boundary(content: bytes) -> bool:
    return re.search(rb"(?:^|[\r\n])--b0undary(?:[ \t]*(?:[\r\n]|--|$))", content) is None and (
        not content.startswith(b"--b0undary")
    )


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["file", "model", "x"]), contents.filter(unlike_a_boundary)), max_size=4))
@example([("file", FILE), ("model", b"")])
def test_what_clients_write_is_read_back(parts: list[tuple[str, bytes]]) -> None:
    body = b"".join(file(name, value) for name, value in parts) + END
    found = form(body, TYPE)
    assert [(part.name, body[part.start : part.end]) for part in found.parts] == parts
    names = [name for name, _ in parts]
    if names.count("model") < 2:
        sent = b"".join(with_fields(body, found, {"model": "new"}))
        again = [(part.name, sent[part.start : part.end]) for part in form(sent, TYPE).parts]
        expected = [(name, b"new" if name == "model" else value) for name, value in parts]
        assert again == (expected if "model" in names else [("model", b"new"), *expected])


fragments = st.sampled_from(
    (
        *(b"--b0undary", b"\r\n", b"\r\n\r\n", b"--", b'Content-Disposition: form-data; name="model"', b"; filename=x"),
        *(b"v", b" ", b"\n", b"\r", b"\xff", b'"', b"Content-Disposition: form-data; name=a", b"--b0undary--"),
        *(b"\\", b'\\"', b"%22", b":", b"X-Y: z", b"; name=model", b"(", b"\t"),
    )
)


@settings(max_examples=150, deadline=None)
@given(st.lists(fragments, max_size=14).map(b"".join), st.booleans())
def test_only_a_malformed_request_comes_out(body: bytes, whole: bool) -> None:
    if whole:
        body = field("x", b"1") + b"--b0undary\r\n" + body + b"\r\n" + END
    try:
        found = form(body, TYPE)
    except MalformedRequest:
        return
    assert all(isinstance(part, Part) and 0 <= part.opened < part.start <= part.end for part in found.parts)
    # What is taken is what the standard library reads, too.
    read = [(part.name, body[part.start : part.end]) for part in found.parts]
    if all(name in ("model", "x") for name, _ in read):
        assert read == by_email(body, TYPE)


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet=";= \"\\a*'%b\r\n\t", max_size=24))
def test_any_parameters(text: str) -> None:
    try:
        found = parameters(text)
    except MalformedRequest:
        return
    assert all(name == name.lower() and name for name in found)


def test_ten_megabytes_are_found_in_milliseconds() -> None:
    likeness = b"\r\n--b0undaryX" + random.Random(1).randbytes(1_200)
    body = field("model", b"w") + file("file", likeness * 8_000) + END
    assert len(body) > 9_000_000
    assert best_seconds(lambda: with_fields(body, form(body, TYPE), {"model": "x"}), 3) < 0.1
    refused(field("model", b"w") + file("file", likeness[:20] * 11_000) + END)
