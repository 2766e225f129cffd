"""How the HTTP clients connect: certificates are read once, and checked each time."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from dialogs.providers import http
from dialogs.providers.base import ModelFacts, ProviderSettings, ProviderUnreachable
from dialogs.providers.http import connecting
from dialogs.providers.registry import KINDS, load, make_provider
from tests.dialogs.providers.upstream import Upstream, as_json
from tests.dialogs.providers.worlds import KEY, error_of

LISTED = as_json({"data": [{"id": "small"}], "models": [{"name": "small", "key": "small"}]})
CONNECTED = sorted(set(KINDS) - {"scripted"})


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A key and a certificate for 127.0.0.1 that nobody else has signed."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "here")])
    today = datetime.now(UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(today - timedelta(days=1)).not_valid_after(today + timedelta(days=1))
    here = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    signed = builder.add_extension(here, critical=False).sign(key, hashes.SHA256())
    unencrypted = serialization.NoEncryption()
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    path = tmp_path / "certificate.pem"
    path.write_bytes(key.private_bytes(pem, pkcs8, unencrypted) + signed.public_bytes(pem))
    return path


@pytest.fixture
async def secure(certificate: Path) -> AsyncIterator[Upstream]:
    told, context = Upstream(), ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    async with await asyncio.start_server(told.serve, "127.0.0.1", 0, ssl=context) as server:
        told.url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield told


@pytest.fixture(autouse=True)
def read_again() -> Iterator[None]:
    http._load_certificates.cache_clear()
    yield
    http._load_certificates.cache_clear()


async def listed(kind: str, url: str) -> tuple[ModelFacts, ...]:
    provider = make_provider(ProviderSettings(name="x", kind=kind, base_url=url, api_key=KEY))
    try:
        return await provider.list_models()
    finally:
        await provider.aclose()


def test_certificates_are_read_once_for_all_threads() -> None:
    settings = ProviderSettings(name="x", kind="openai", base_url="https://host")

    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda _number: connecting(settings)["verify"], range(32)))

    assert len({id(context) for context in made}) == 1
    assert http._load_certificates.cache_info().misses == 1


@pytest.mark.parametrize("kind", CONNECTED)
async def test_a_server_that_nobody_vouches_for_is_not_spoken_to(kind: str, secure: Upstream) -> None:
    # The first of a kind loads an SDK: that is not what must be done in time.
    load(kind)
    error = await error_of(listed(kind, secure.url))

    assert isinstance(error, ProviderUnreachable)
    assert "certificate verify failed" in str(error)
    assert secure.asked == []


@pytest.mark.parametrize("kind", CONNECTED)
async def test_a_server_whose_certificate_is_trusted_is_spoken_to(
    kind: str, secure: Upstream, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    for path in ("/v1/models", "/api/v1/models", "/api/tags"):
        secure.on(path, LISTED)

    found = await listed(kind, secure.url)

    assert [facts.model_id for facts in found] == ["small"]
