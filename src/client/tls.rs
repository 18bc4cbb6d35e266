//! TLS to a pump: whom to trust, and what to say where that fails.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{CertificateError, ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Speaks TLS over a connection to a host. Trusted is who issued the certificates of a file, or
/// else whom this system trusts.
pub(super) async fn connect(
    stream: TcpStream,
    host: &str,
    authority: Option<&Path>,
) -> io::Result<TlsStream<TcpStream>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().map_err(io::Error::other)?;
    let config = builder.with_root_certificates(roots(authority)?).with_no_client_auth();
    let name = ServerName::try_from(host.to_owned()).map_err(|_| {
        let text = format!("{host:?} is no host's name, and no certificate could be held by it");
        io::Error::new(io::ErrorKind::InvalidInput, text)
    })?;
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.map_err(explained)
}

fn roots(authority: Option<&Path>) -> io::Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    let Some(path) = authority else {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            let text = "this system trusts no authority: name a file with its certificate";
            return Err(io::Error::new(io::ErrorKind::NotFound, text));
        }
        return Ok(roots);
    };
    let wrong = |why: String| {
        io::Error::new(io::ErrorKind::InvalidData, format!("{}: {why}", path.display()))
    };
    let text = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
    for it in CertificateDer::pem_slice_iter(&text) {
        let it = it.map_err(|error| wrong(format!("it is no PEM: {error}")))?;
        roots.add(it).map_err(|error| wrong(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(wrong("it holds no certificate: no -----BEGIN CERTIFICATE-----".into()));
    }
    Ok(roots)
}

/// Says what to do, where it is the certificate.
fn explained(error: io::Error) -> io::Error {
    let inner = error.get_ref().and_then(|it| it.downcast_ref::<rustls::Error>());
    let text = match inner {
        Some(rustls::Error::InvalidCertificate(why)) => match why {
            // An issuer of the same name, but another, shows by the signature.
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                "nobody we trust issued its certificate; trust who did by naming a file with \
                 that certificate"
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "its certificate is for another name; connect by a name that stands in it"
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "its certificate has expired"
            }
            _ => return error,
        },
        Some(rustls::Error::InvalidMessage(_)) => "what listens there doesn't speak TLS",
        _ => return error,
    };
    io::Error::new(error.kind(), text)
}
