//! Options that several verbs share: the address of a running pump, and the caller's token.

use std::io;
use std::path::PathBuf;

use crate::cli::base::organism;
use crate::cli::base::screen::Failure;
use crate::client::{self, Address, Client};

/// The address of a running pump, and the caller's credentials.
#[derive(Debug, clap::Args)]
pub(crate) struct Caller {
    /// Where the pump listens: HOST:PORT, tls:HOST:PORT, or unix:PATH. [default: the first TCP or
    /// Unix door of organism.yaml here, else 127.0.0.1:8765]
    #[arg(long, value_name = "ADDR")]
    connect: Option<Address>,
    #[command(flatten)]
    credentials: Credentials,
}

impl Caller {
    /// Connects, and authenticates if there is a token. Without an address, connects to the address
    /// of the manifest in the current folder, or to the default.
    pub(crate) async fn connect(&self) -> Result<Client, Failure> {
        let address = self.connect.clone().map_or_else(organism::address, Ok)?;
        self.credentials.connect(&address).await
    }
}

/// The caller's token, and the certificates to trust.
#[derive(Debug, clap::Args)]
pub(crate) struct Credentials {
    /// The certificates to trust for tls, in a PEM file. Without it, the system's certificates.
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// The token that says who is sending. At a Unix socket, a caller without a token is this user.
    #[arg(long, value_name = "TOKEN", env = "PUMPHOUSE_TOKEN", hide_env_values = true)]
    token: Option<String>,
}

impl Credentials {
    /// Connects, and authenticates if there is a token.
    pub(crate) async fn connect(&self, to: &Address) -> Result<Client, Failure> {
        let address = match (to, &self.ca) {
            (tls @ Address::Tls { .. }, Some(ca)) => tls.clone().trusting(ca),
            (_, Some(_)) => {
                let text = format!("--ca is for tls:HOST:PORT, not for {to}; nothing was sent");
                return Err(Failure::Untried(text));
            }
            (address, None) => address.clone(),
        };
        let client = Client::connect_to(&address).await;
        let mut client = client.map_err(|error| unconnected(&address, &error))?;
        if let Some(token) = self.token.as_ref().filter(|it| !it.is_empty()) {
            client.authenticate(token).await.map_err(|it| token_refused(&it))?;
        }
        Ok(client)
    }
}

fn unconnected(address: &Address, error: &client::Error) -> Failure {
    use io::ErrorKind::{InvalidData, NotFound, Unsupported};
    let way = match (address, error) {
        (Address::Tls { .. }, client::Error::Io(it)) if it.kind() == Unsupported => "",
        (Address::Tls { .. }, client::Error::Io(it))
            if matches!(it.kind(), InvalidData | NotFound) =>
        {
            "; --ca FILE names whom to trust"
        }
        _ => {
            "; start `pumphouse run` there, or name another with --connect HOST:PORT, \
             tls:HOST:PORT or unix:PATH"
        }
    };
    Failure::Untried(format!("{address} can't be reached: {error}{way}"))
}

/// Makes the failure for a client whose token was refused. Nothing has been sent then.
fn token_refused(error: &client::Error) -> Failure {
    Failure::Untried(format!("{error}; nothing was sent"))
}

pub(crate) fn broken(error: &client::Error) -> Failure {
    Failure::Wrong(error.to_string())
}
