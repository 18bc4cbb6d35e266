//! Credentials: secret headers from a file. Each line of the file has a host, a header and the
//! header's value.

use std::path::Path;

use pumphouse::secret::{Secret, Secrets, TooShort};
use reqwest::Url;
use reqwest::header::{HeaderName, HeaderValue};

use super::super::secret_file;
use super::super::web::{Web, host_of};

/// The permission bits that a file of credentials must not have: all bits of others, and the write
/// bit of the group.
const REFUSED_MODES: u32 = 0o027;

/// Secret headers for certain hosts. They are sent in addition to the caller's headers.
#[derive(Default)]
pub(super) struct Credentials {
    all: Vec<Credential>,
    /// Each value, with the parts of it that are secrets themselves.
    secrets: Vec<Secret>,
    /// These secrets, which are hidden in answers.
    hidden: Secrets,
}

struct Credential {
    host: String,
    /// The port. `None` stands for every port of the host that the listener may reach.
    port: Option<u16>,
    name: HeaderName,
    value: HeaderValue,
    secret: Secret,
}

impl Credentials {
    /// Reads a file of credentials. Other users must have no access to the file, and its group must
    /// not be able to write it. No error message contains a value from the file.
    pub(super) fn read(path: &Path, web: &Web) -> Result<Credentials, String> {
        let shown = path.display();
        let text =
            secret_file::read(path, REFUSED_MODES).map_err(|why| format!("{shown}: {why}"))?;
        let mut all = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let one = Credential::parse(line, web);
            all.push(one.map_err(|why| format!("{shown}: line {}: {why}", number + 1))?);
        }
        let secrets = all.iter().flat_map(|it| it.secret.parts()).collect();
        Ok(Credentials { all, ..Credentials::default() }.with_secrets(secrets))
    }

    /// Hides these secrets in answers, too.
    pub(super) fn with_secrets(mut self, more: Vec<Secret>) -> Credentials {
        self.secrets.extend(more);
        self.hidden = Secrets::new(self.secrets.iter().cloned());
        self
    }

    /// Returns the headers for a request to this URL.
    pub(super) fn for_url(&self, url: &Url) -> impl Iterator<Item = (&HeaderName, &HeaderValue)> {
        let (host, port) = (host_of(url), url.port_or_known_default());
        let fits =
            move |it: &&Credential| it.host == host && (it.port.is_none() || it.port == port);
        self.all.iter().filter(fits).map(|it| (&it.name, &it.value))
    }

    /// Returns all secrets that are hidden.
    pub(super) fn secrets(&self) -> Vec<Secret> {
        self.secrets.clone()
    }

    /// Hides the secrets in a server's text.
    pub(super) fn hide(&self, text: String) -> String {
        self.hidden.hide_in(text)
    }
}

impl Credential {
    fn parse(line: &str, web: &Web) -> Result<Credential, String> {
        let form = "a line is a host, a header and its value, as in `example.org X-Key: …`";
        let (host, rest) = line.split_once(char::is_whitespace).ok_or(form)?;
        let (name, value) = rest.split_once(':').ok_or(form)?;
        let url: Url = format!("http://{host}/").parse().map_err(|_| form)?;
        let host_name = host_of(&url);
        if host_name.is_empty() || host.contains(['/', '@', '?', '#', '\\']) {
            return Err(form.to_owned());
        }
        let port = host.rsplit_once(':').map(|(_, port)| port).filter(|it| !it.ends_with(']'));
        let port = port.map(str::parse::<u16>).transpose().map_err(|_| form)?;
        if !web.lists(&host_name, port) {
            return Err(format!("{host} doesn't stand in `hosts`"));
        }
        let name = name.trim().parse::<HeaderName>().map_err(|_| form)?;
        let value = value.trim();
        let mut header = HeaderValue::from_str(value)
            .map_err(|_| format!("the value of {name} holds what no header may"))?;
        header.set_sensitive(true);
        let told = |it: TooShort| format!("the value of {name}: {it}");
        let secret = Secret::new(value);
        secret.parts().iter().try_for_each(Secret::long_enough).map_err(told)?;
        Ok(Credential { host: host_name, port, name, value: header, secret })
    }
}
