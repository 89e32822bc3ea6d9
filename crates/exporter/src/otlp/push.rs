//! Sends figures to an endpoint, again and again.

use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Request, Uri};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::error::ExporterError;
use crate::figures::Figures;
use crate::otlp::request;

/// Port of OTLP over HTTP.
const PORT: u16 = 4318;
/// Path of metrics.
const PATH: &str = "/v1/metrics";
/// An endpoint that does not answer for this long is tried again with the next figures.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where figures are pushed to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    text: String,
    address: SocketAddr,
    authority: String,
    path: String,
}

impl Endpoint {
    /// Reads `http://HOST[:PORT][/PATH]`; the host must be this machine.
    pub fn parse(text: &str) -> Result<Self, ExporterError> {
        let refused = |because: &str| ExporterError::Endpoint {
            endpoint: text.to_owned(),
            because: because.to_owned(),
        };
        let uri: Uri = text
            .parse()
            .map_err(|_| refused("expected http://127.0.0.1:4318"))?;
        let host = uri
            .host()
            .ok_or_else(|| refused("expected http://127.0.0.1:4318"))?;
        let elsewhere = "only endpoints of this machine are pushed to, without TLS: run an OpenTelemetry collector here, and let it forward";
        if uri.scheme_str() != Some("http") {
            return Err(refused(elsewhere));
        }
        let port = uri.port_u16().unwrap_or(PORT);
        let plain = host.trim_start_matches('[').trim_end_matches(']');
        let addresses = (plain, port)
            .to_socket_addrs()
            .map_err(|error| refused(&format!("no such host: {error}")))?;
        let local = addresses.into_iter().find(|one| one.ip().is_loopback());
        let path = match uri.path() {
            "" | "/" => PATH,
            path => path,
        };
        Ok(Self {
            text: text.to_owned(),
            address: local.ok_or_else(|| refused(elsewhere))?,
            authority: format!("{host}:{port}"),
            path: path.to_owned(),
        })
    }
}

/// Pushes to one endpoint.
pub struct Pusher {
    endpoint: Endpoint,
    runtime: tokio::runtime::Runtime,
}

impl Pusher {
    /// Pushes to `endpoint`.
    pub fn new(endpoint: Endpoint) -> Result<Self, ExporterError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| ExporterError::Endpoint {
                endpoint: endpoint.text.clone(),
                because: format!("no runtime for it: {error}"),
            })?;
        Ok(Self { endpoint, runtime })
    }

    /// Pushes `figures` as they are at `now`. Sums are cumulative, so that one that fails is made
    /// good by the next.
    pub fn push(&self, figures: &Figures, now: u64) -> Result<(), ExporterError> {
        let bytes = request(figures, now);
        let sent = self.runtime.block_on(async {
            match tokio::time::timeout(PATIENCE, self.send(bytes)).await {
                Ok(sent) => sent,
                Err(_) => Err(format!("no answer within {} s", PATIENCE.as_secs())),
            }
        });
        sent.map_err(|because| ExporterError::Endpoint {
            endpoint: self.endpoint.text.clone(),
            because,
        })
    }

    async fn send(&self, bytes: Vec<u8>) -> Result<(), String> {
        let stream = TcpStream::connect(self.endpoint.address)
            .await
            .map_err(|error| error.to_string())?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| error.to_string())?;
        // What becomes of the connection is seen by the request.
        tokio::spawn(connection);
        let request = Request::post(&self.endpoint.path)
            .header(HOST, &self.endpoint.authority)
            .header(CONTENT_TYPE, "application/x-protobuf")
            .body(Full::new(Bytes::from(bytes)))
            .map_err(|error| error.to_string())?;
        let answer = sender
            .send_request(request)
            .await
            .map_err(|error| error.to_string())?;
        if answer.status().is_success() {
            Ok(())
        } else {
            Err(format!("it answered {}", answer.status()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_of_this_machine_are_taken_and_others_refused() {
        let endpoint = Endpoint::parse("http://127.0.0.1").unwrap();
        assert_eq!(endpoint.address, "127.0.0.1:4318".parse().unwrap());
        assert_eq!(endpoint.path, "/v1/metrics");
        let endpoint = Endpoint::parse("http://[::1]:99/otlp").unwrap();
        assert_eq!(
            (endpoint.address.port(), endpoint.path.as_str()),
            (99, "/otlp")
        );
        for text in ["http://192.0.2.1:4318", "https://127.0.0.1:4318"] {
            let error = Endpoint::parse(text).unwrap_err().to_string();
            assert!(
                error.contains("run an OpenTelemetry collector here"),
                "{error}"
            );
        }
        assert!(Endpoint::parse("nonsense at all").is_err());
    }
}
