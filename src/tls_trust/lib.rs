//! Which certificates TLS clients in this crate trust, and hints for users about TLS errors.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{CertificateError, ClientConfig, RootCertStore};

use pumphouse_ground::regular_file;

/// The most bytes of a file with the certificates of authorities: twenty times those of a system.
const AUTHORITY_BYTES_MAX: u64 = 4 << 20;

/// Returns the configuration of a TLS client. The client trusts the certificates in the PEM file
/// `authority`. Without such a file, it trusts the certificate authorities that this system trusts.
///
/// # Errors
/// If the file can't be read or has no certificate, or if this system trusts no authority.
pub fn config(authority: Option<&Path>) -> io::Result<ClientConfig> {
    let roots = roots(authority)?;
    if roots.is_empty() {
        let text = "this system trusts no authority: name a file with its certificate";
        return Err(io::Error::new(io::ErrorKind::NotFound, text));
    }
    with(roots)
}

/// Returns the configuration of a client that connects without TLS. It trusts no certificate.
pub fn nobody() -> io::Result<ClientConfig> {
    with(RootCertStore::empty())
}

fn with(roots: RootCertStore) -> io::Result<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().map_err(io::Error::other)?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

fn roots(authority: Option<&Path>) -> io::Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    let Some(path) = authority else {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        return Ok(roots);
    };
    let wrong = |why: String| {
        io::Error::new(io::ErrorKind::InvalidData, format!("{}: {why}", path.display()))
    };
    let text = regular_file::bytes(path, AUTHORITY_BYTES_MAX);
    let text = text.map_err(|error| wrong(error.to_string()))?;
    for it in CertificateDer::pem_slice_iter(&text) {
        let it = it.map_err(|error| wrong(format!("it is no PEM: {error}")))?;
        roots.add(it).map_err(|error| wrong(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(wrong("it holds no certificate: no -----BEGIN CERTIFICATE-----".into()));
    }
    Ok(roots)
}

/// Says in plain words what is wrong and what to do, for the TLS errors that users often meet.
/// Returns `None` for other errors.
pub fn explained(error: &rustls::Error) -> Option<&'static str> {
    match error {
        rustls::Error::InvalidCertificate(why) => match why {
            // If an unknown issuer has the name of a trusted issuer, the error is `BadSignature`.
            CertificateError::UnknownIssuer | CertificateError::BadSignature => Some(
                "nobody we trust issued its certificate; trust who did by naming a file with \
                 that certificate",
            ),
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                Some("its certificate is for another name; connect by a name that stands in it")
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                Some("its certificate has expired")
            }
            // Several errors share this variant, and differ only in their text.
            CertificateError::Other(why) if why.to_string() == "CaUsedAsEndEntity" => Some(
                "its certificate is an authority's (CA:TRUE), which no server may show; make one \
                 with basicConstraints=critical,CA:FALSE, or have the authority issue it one",
            ),
            _ => None,
        },
        rustls::Error::InvalidMessage(_) => Some("what listens there doesn't speak TLS"),
        _ => None,
    }
}
