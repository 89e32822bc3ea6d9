//! Who may read: the user that serves, others with a token, other machines only over TLS.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use lockstep_segment::is_member;

use crate::error::ExporterError;

/// Shorter tokens can be guessed.
const SHORTEST_TOKEN: usize = 16;
/// Longer files are no tokens.
const LONGEST_TOKEN: u64 = 4096;

/// What protects the figures.
#[derive(Clone, Debug, Default)]
pub struct Access {
    token: Option<String>,
    /// A group whose members may read; nobody if it is empty.
    group: String,
    /// Certificate chain and private key, PEM files each.
    pub tls: Option<(PathBuf, PathBuf)>,
}

impl Access {
    /// Takes the token in `token` and the certificate and key in `tls`, if there are any.
    pub fn new(
        token: Option<&Path>,
        tls: Option<(PathBuf, PathBuf)>,
    ) -> Result<Self, ExporterError> {
        if let Some((_, key)) = &tls {
            check_private(key)?;
        }
        Ok(Self {
            token: token.map(read_token).transpose()?,
            group: String::new(),
            tls,
        })
    }

    /// Also lets members of `group` read, who may read the segments; nobody if it is empty.
    #[must_use]
    pub fn with_group(self, group: &str) -> Self {
        Self {
            group: group.to_owned(),
            ..self
        }
    }

    /// Refuses an address that other machines reach if what they read would not be protected.
    pub fn check_address(&self, address: SocketAddr) -> Result<(), ExporterError> {
        let unprotected = |because| {
            Err(ExporterError::Unprotected {
                address: address.to_string(),
                because,
            })
        };
        match (&self.tls, &self.token) {
            (Some(_), _) if !cfg!(feature = "tls") => unprotected(
                "this build has no TLS: build it with `--features tls`, or serve 127.0.0.1 behind a proxy",
            ),
            _ if address.ip().is_loopback() => Ok(()),
            (None, _) => unprotected(
                "without TLS anybody in between could read along: give --tls-certificate and --tls-key, or an address of this machine alone such as 127.0.0.1:9400",
            ),
            (_, None) => unprotected(
                "without a token anybody could ask: give --token-file with a file that holds one, or an address of this machine alone such as 127.0.0.1:9400",
            ),
            _ => Ok(()),
        }
    }

    /// Whether the one at `peer` may read: by `authorization`, the header of the request, or as a
    /// user of this machine who may read the segments, too.
    pub fn allows(
        &self,
        peer: SocketAddr,
        server: SocketAddr,
        authorization: Option<&str>,
    ) -> bool {
        let given = authorization.and_then(|text| text.strip_prefix("Bearer "));
        match (&self.token, given) {
            (Some(token), Some(given)) => lockstep_serve::same_token(token, given),
            _ => {
                let ours = rustix::process::geteuid().as_raw();
                let theirs = peer.ip().is_loopback().then(|| user_of(peer, server));
                let in_group = |user| !self.group.is_empty() && is_member(user, &self.group);
                theirs
                    .flatten()
                    .is_some_and(|user| user == ours || user == 0 || in_group(user))
            }
        }
    }
}

/// A secret that others can read is none.
fn check_private(path: &Path) -> Result<(), ExporterError> {
    let secret = |because: String| ExporterError::Secret {
        path: path.to_owned(),
        because,
    };
    let found = fs::metadata(path).map_err(|error| secret(format!("cannot read it: {error}")))?;
    let mode = found.permissions().mode();
    if mode & 0o077 != 0 {
        return Err(secret(format!(
            "others may read it (mode {:o}); chmod 600 it",
            mode & 0o777
        )));
    }
    if found.size() > LONGEST_TOKEN * 16 {
        return Err(secret(format!("{} bytes are no secret", found.size())));
    }
    Ok(())
}

fn read_token(path: &Path) -> Result<String, ExporterError> {
    check_private(path)?;
    let secret = |because: String| ExporterError::Secret {
        path: path.to_owned(),
        because,
    };
    let text = fs::read_to_string(path).map_err(|error| secret(error.to_string()))?;
    let token = text.trim();
    let plain = token.bytes().all(|byte| byte.is_ascii_graphic());
    if token.len() < SHORTEST_TOKEN || token.len() as u64 > LONGEST_TOKEN || !plain {
        return Err(secret(format!(
            "a token is one line of {SHORTEST_TOKEN} to {LONGEST_TOKEN} printable characters; `openssl rand -hex 32` makes one"
        )));
    }
    Ok(token.to_owned())
}

/// The user whose socket is at the other end of a connection within this machine.
fn user_of(peer: SocketAddr, server: SocketAddr) -> Option<u32> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    tables.into_iter().find_map(|path| {
        let table = fs::read_to_string(path).ok()?;
        table.lines().find_map(|line| {
            let mut fields = line.split_ascii_whitespace().skip(1);
            let local = socket_address(fields.next()?)?;
            let remote = socket_address(fields.next()?)?;
            let user = fields.nth(4)?.parse().ok()?;
            (local == plain(peer) && remote == plain(server)).then_some(user)
        })
    })
}

/// An IPv4 address that was reached through an IPv6 socket is the same address.
fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// An address as the kernel's table has it: words of the host's byte order in hexadecimal digits.
fn socket_address(text: &str) -> Option<SocketAddr> {
    let (words, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let mut bytes = Vec::with_capacity(16);
    for at in (0..words.len()).step_by(8) {
        let word = u32::from_str_radix(words.get(at..at + 8)?, 16).ok()?;
        bytes.extend(word.to_ne_bytes());
    }
    let four: Result<[u8; 4], _> = bytes.as_slice().try_into();
    let sixteen: Result<[u8; 16], _> = bytes.as_slice().try_into();
    let ip = match (four, sixteen) {
        (Ok(four), _) => four.into(),
        (_, Ok(sixteen)) => sixteen.into(),
        _ => return None,
    };
    Some(plain(SocketAddr::new(ip, port)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(address: &str, access: &Access) -> String {
        let checked = access.check_address(address.parse().unwrap());
        checked.map_or_else(|error| error.to_string(), |()| "served".to_owned())
    }

    #[test]
    fn an_address_that_others_reach_needs_tls_and_a_token() {
        let open = Access::default();
        assert_eq!(refusal("127.0.0.1:0", &open), "served");
        assert_eq!(refusal("[::1]:0", &open), "served");
        assert!(refusal("0.0.0.0:9400", &open).contains("without TLS"));
        let secret = Access {
            token: Some("0123456789abcdef".to_owned()),
            ..Access::default()
        };
        assert!(refusal("192.168.1.2:9400", &secret).contains("without TLS"));
        let covered = Access {
            tls: Some(("certificate".into(), "key".into())),
            ..Access::default()
        };
        let wanted = if cfg!(feature = "tls") {
            "without a token"
        } else {
            "this build has no TLS"
        };
        assert!(refusal("192.168.1.2:9400", &covered).contains(wanted));
    }

    #[test]
    fn the_kernel_says_whose_a_connection_is() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let server = listener.local_addr().unwrap();
        let client = std::net::TcpStream::connect(server).unwrap();
        let peer = client.local_addr().unwrap();
        let ours = rustix::process::geteuid().as_raw();
        assert_eq!(user_of(peer, server), Some(ours));
        assert_eq!(user_of("127.0.0.1:1".parse().unwrap(), server), None);
        assert!(Access::default().allows(peer, server, None));
    }

    #[test]
    fn a_wrong_token_is_worse_than_none() {
        let access = Access {
            token: Some("0123456789abcdef".to_owned()),
            ..Access::default()
        };
        let far = "192.168.1.2:1".parse().unwrap();
        let server = "192.168.1.1:9400".parse().unwrap();
        assert!(access.allows(far, server, Some("Bearer 0123456789abcdef")));
        assert!(!access.allows(far, server, Some("Bearer 0123456789abcdeg")));
        assert!(!access.allows(far, server, Some("Bearer 0123456789abcde")));
        assert!(!access.allows(far, server, None));
    }

    #[test]
    fn addresses_of_the_kernel_are_read() {
        let expected: SocketAddr = "127.0.0.1:8080".parse().unwrap();
        let word = u32::from_ne_bytes([127, 0, 0, 1]);
        assert_eq!(socket_address(&format!("{word:08X}:1F90")), Some(expected));
        assert_eq!(socket_address("zz:1F90"), None);
        assert_eq!(socket_address("0100007F"), None);
    }
}
