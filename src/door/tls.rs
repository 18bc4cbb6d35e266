//! The certificate and the private key of a TLS door. They are read from files, which may change
//! while the pump runs.

use std::fmt;
use std::fs::{self, Permissions};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{CertificateError, RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;

use crate::clock;
use crate::door::client_tokens::check_access;
use crate::regular_file;

/// The most bytes of a file of certificates or of a key.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// A certificate that expires within this time gets a warning.
const WARN_BEFORE: Duration = Duration::from_secs(14 * 24 * 60 * 60);

/// A certificate and its private key. Clones share them, so several doors may have them. When the
/// files are read again, new connections use the new certificate and key, and open connections keep
/// the old ones.
///
/// ```no_run
/// # extern crate pumphouse_door as pumphouse;
/// use pumphouse::door::{Options, Tcp, Tls};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let tls = Tls::read("fullchain.pem", "privkey.pem")?;
/// let door = Tcp::bind("0.0.0.0:8765", Options::default().tls(tls.clone())).await?;
/// // later, when the files have changed
/// tls.reload()?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Tls {
    certificate: Arc<Path>,
    key: Arc<Path>,
    config: Arc<RwLock<Arc<ServerConfig>>>,
    /// The state of both files when they were last read, even if that failed.
    seen: Arc<Mutex<[Look; 2]>>,
}

/// The state of a file: the time of its last change, its length and its permissions. `None` if
/// there is no such file.
type Look = Option<(SystemTime, u64, Permissions)>;

impl Tls {
    /// Reads a certificate and its private key, both in PEM. Intermediate certificates may follow
    /// in the certificate's file.
    ///
    /// # Errors
    /// If one of the files can't be used.
    pub fn read(certificate: impl AsRef<Path>, key: impl AsRef<Path>) -> Result<Tls, Unusable> {
        let (certificate, key) = (certificate.as_ref(), key.as_ref());
        let seen = Arc::new(Mutex::new(look(certificate, key)));
        let config = Arc::new(RwLock::new(config(certificate, key)?));
        Ok(Tls { certificate: certificate.into(), key: key.into(), config, seen })
    }

    /// The file of the private key.
    pub fn key_file(&self) -> &Path {
        &self.key
    }

    /// Checks only a certificate: that the file holds one, and that it is valid now.
    ///
    /// # Errors
    /// If the file can't be used.
    pub fn check_certificate(path: &Path) -> Result<(), Unusable> {
        check_time(&chain(path)?).map(drop).map_err(|why| Unusable::of(path, why))
    }

    /// Checks only a private key: that the file holds one, and, on Unix, that other users can't
    /// read or change it. The file's group may read it.
    ///
    /// # Errors
    /// If the file can't be used.
    pub fn check_key(path: &Path) -> Result<(), Unusable> {
        secret(path).map(drop)
    }

    /// Reads the files again.
    ///
    /// # Errors
    /// If one of the files can't be used. In that case the old certificate and key stay in use.
    pub fn reload(&self) -> Result<(), Unusable> {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) =
            look(&self.certificate, &self.key);
        let config = config(&self.certificate, &self.key)?;
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = config;
        tracing::info!(certificate = %self.certificate.display(), "the certificate was read again");
        Ok(())
    }

    /// Reads the files again if they have changed since they were last read. Returns true if they
    /// have. An unusable file causes an error once, and again only after the file has changed.
    ///
    /// # Errors
    /// If one of the files can't be used. In that case the old certificate and key stay in use.
    pub fn reload_if_changed(&self) -> Result<bool, Unusable> {
        let now = look(&self.certificate, &self.key);
        if *self.seen.lock().unwrap_or_else(PoisonError::into_inner) == now {
            return Ok(false);
        }
        self.reload().map(|()| true)
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        self.config.read().unwrap_or_else(PoisonError::into_inner).clone().into()
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tls").field(&self.certificate).finish()
    }
}

fn look(certificate: &Path, key: &Path) -> [Look; 2] {
    [certificate, key].map(|path| {
        let there = fs::metadata(path).ok()?;
        Some((there.modified().ok()?, there.len(), there.permissions()))
    })
}

fn config(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, Unusable> {
    let chain = chain(certificate)?;
    let secret = secret(key)?;
    let lasts = check_time(&chain).map_err(|why| Unusable::of(certificate, why))?;
    if lasts == Lasts::NotLong {
        tracing::warn!("the certificate expires within two weeks");
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions();
    let config = builder.and_then(|it| it.with_no_client_auth().with_single_cert(chain, secret));
    config.map(Arc::new).map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => {
            Unusable::of(key, format!("it is not the key of {}", certificate.display()))
        }
        error => Unusable::of(certificate, error.to_string()),
    })
}

fn chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, Unusable> {
    let wrong = |why: String| Unusable::of(path, why);
    let (text, _) = bytes(path).map_err(wrong)?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let chain = chain.map_err(|error| wrong(format!("it is no PEM: {error}")))?;
    if chain.is_empty() {
        return Err(wrong("it holds no certificate: no -----BEGIN CERTIFICATE-----".into()));
    }
    Ok(chain)
}

fn secret(path: &Path) -> Result<PrivateKeyDer<'static>, Unusable> {
    let wrong = |why: String| Unusable::of(path, why);
    let (text, opened) = bytes(path).map_err(wrong)?;
    check_access(&opened).map_err(wrong)?;
    PrivateKeyDer::from_pem_slice(&text).map_err(|error| {
        let is_locked = text.windows(9).any(|it| it == b"ENCRYPTED");
        wrong(match error {
            _ if is_locked => "it is locked by a passphrase: write it without one".into(),
            rustls::pki_types::pem::Error::NoItemsFound => {
                "it holds no private key: no -----BEGIN PRIVATE KEY-----".into()
            }
            error => format!("it is no PEM: {error}"),
        })
    })
}

fn bytes(path: &Path) -> Result<(Vec<u8>, fs::Metadata), String> {
    let file = regular_file::open(path).map_err(|error| error.to_string())?;
    let opened = file.metadata().map_err(|error| error.to_string())?;
    let bytes = regular_file::rest(file, FILE_BYTES_MAX).map_err(|error| error.to_string())?;
    Ok((bytes, opened))
}

/// Whether a certificate stays valid for longer than [`WARN_BEFORE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lasts {
    Long,
    NotLong,
}

/// Returns whether the certificate stays valid for longer than [`WARN_BEFORE`], or why it isn't
/// valid now.
fn check_time(chain: &[CertificateDer<'static>]) -> Result<Lasts, String> {
    let [first, between @ ..] = chain else { return Ok(Lasts::Long) };
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(chain.last().cloned());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
    let (1.., Ok(verifier), Ok(name)) = (added, verifier, ServerName::try_from("any.invalid"))
    else {
        return Err("it is no certificate that clients would take".into());
    };
    let now = Duration::from_micros(clock::wall_us());
    let at = |time| {
        let time = UnixTime::since_unix_epoch(time);
        match verifier.verify_server_cert(first, between, &name, &[], time) {
            Err(rustls::Error::InvalidCertificate(why)) => Some(why),
            _ => None,
        }
    };
    use CertificateError::{Expired, ExpiredContext, NotValidYet, NotValidYetContext};
    match at(now) {
        Some(Expired | ExpiredContext { .. }) => return Err("it has expired: renew it".into()),
        Some(NotValidYet | NotValidYetContext { .. }) => {
            return Err("it is not valid yet: look at this machine's clock".into());
        }
        Some(CertificateError::BadEncoding) => return Err("it is no certificate".into()),
        // Clients judge whether the issuer and the name are right.
        _ => {}
    }
    match at(now + WARN_BEFORE) {
        Some(Expired | ExpiredContext { .. }) => Ok(Lasts::NotLong),
        _ => Ok(Lasts::Long),
    }
}

/// The error of a file that can't be used as a certificate or a key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unusable {
    /// The file's path.
    pub path: PathBuf,
    /// What is wrong with the file.
    pub why: String,
}

impl Unusable {
    fn of(path: &Path, why: String) -> Unusable {
        Unusable { path: path.to_owned(), why }
    }
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.why)
    }
}

impl std::error::Error for Unusable {}
