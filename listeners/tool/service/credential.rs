//! The credential file of a service, in the form of ADR-013 (section 5) and ADR-015:
//!
//! ```json
//! {"service": "trading-api", "auth_type": "bearer", "token": "…", "principal": "tiverton"}
//! ```

use std::path::Path;

use pumphouse::secret::Secret;
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};
use serde::Deserialize;

use super::super::secret_file;

/// The permission bits that a credential file must not have: all bits of the group and of others.
const REFUSED_MODES: u32 = 0o077;

#[derive(Deserialize)]
struct Credential {
    auth_type: String,
    token: String,
}

/// A token that authenticates requests to a service.
pub(super) struct Token {
    /// The value of `Authorization`.
    header: HeaderValue,
    secret: Secret,
}

impl Token {
    /// Reads the token of a credential file. No error contains the token.
    pub(super) fn read(path: &Path) -> Result<Token, String> {
        let wrong = |why: String| format!("auth: {}: {why}", path.display());
        let text = secret_file::read(path, REFUSED_MODES).map_err(wrong)?;
        // The error of the JSON parser may quote the file, so only the line number is shown.
        let credential: Credential = serde_json::from_str(&text).map_err(|it| {
            let form = "{\"service\", \"auth_type\": \"bearer\", \"token\", \"principal\"}";
            wrong(format!("line {}: it isn't of the form {form}", it.line()))
        })?;
        if !credential.auth_type.eq_ignore_ascii_case("bearer") {
            return Err(wrong("its auth_type must be bearer".to_owned()));
        }
        let header = HeaderValue::from_str(&format!("Bearer {}", credential.token));
        match header {
            Ok(mut header) if !credential.token.is_empty() => {
                header.set_sensitive(true);
                let secret = Secret::checked(&credential.token);
                let secret = secret.map_err(|it| wrong(format!("its token: {it}")))?;
                Ok(Token { header, secret })
            }
            _ => Err(wrong("its token is empty, or can't stand in a header".to_owned())),
        }
    }

    /// Returns the header that sends the token.
    pub(super) fn header(&self) -> (HeaderName, HeaderValue) {
        (AUTHORIZATION, self.header.clone())
    }

    /// Returns the token, which is hidden in texts.
    pub(super) fn secret(&self) -> &Secret {
        &self.secret
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    const SENT: &str = "Bearer s3cret-token";

    #[track_caller]
    fn check(text: &str, mode: u32, expected: &str) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("api.json");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        let said = match Token::read(&path) {
            Ok(token) => token.header().1.to_str().unwrap().to_owned(),
            Err(why) => why,
        };
        assert!(said.contains(expected), "{said}");
        assert!(expected == SENT || !said.contains("s3cret-token"), "{said}");
    }

    #[test]
    fn a_credential_file_has_a_bearer_token() {
        let file = r#"{"auth_type": "bearer", "token": "s3cret-token", "principal": "a"}"#;
        check(file, 0o600, SENT);
        check(file, 0o400, SENT);
    }

    #[test]
    fn a_credential_file_that_others_can_read_is_refused() {
        let file = r#"{"auth_type": "bearer", "token": "s3cret-token"}"#;
        for mode in [0o644, 0o640, 0o604, 0o620] {
            check(file, mode, "chmod 600");
        }
    }

    #[test]
    fn what_is_wrong_in_a_credential_file_is_told_without_the_token() {
        check(r#"{"auth_type": "basic", "token": "s3cret-token"}"#, 0o600, "must be bearer");
        check(r#"{"auth_type": "bearer", "token": ""}"#, 0o600, "its token is empty");
        check("{\"auth_type\": \"bearer\", \"token\": \"s3cret-token\\n\"}", 0o600, "in a header");
        check(
            "{\"auth_type\": \"bearer\", \"token\": \"s3cret\"}",
            0o600,
            "of 6 bytes is too short",
        );
        check(
            "{\"auth_type\": \"bearer\",\n \"token\": s3cret-token}",
            0o600,
            "line 2: it isn't of",
        );
        check(r#"{"token": "s3cret-token"}"#, 0o600, "it isn't of the form");
    }
}
