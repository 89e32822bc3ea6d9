//! The endpoint: one page of figures over HTTP.

use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use hyper::{Method, Request, StatusCode};
use lockstep_serve::Answer;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::access::Access;
use crate::error::ExporterError;
use crate::figures::Figures;
use crate::prometheus;
use crate::tls::Tls;

/// Figures that one thread replaces and others read.
#[derive(Clone, Debug, Default)]
pub struct Shared(Arc<Mutex<Arc<Figures>>>);

impl Shared {
    /// The figures of now.
    pub fn get(&self) -> Arc<Figures> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces them.
    pub fn set(&self, figures: Figures) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(figures);
    }
}

/// Connections at a time; more wait.
const MOST_CONNECTIONS: usize = 64;
/// Any connection is closed after this; a scraper opens another one.
const LONGEST: Duration = Duration::from_secs(3600);

/// An endpoint that listens.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    access: Access,
    tls: Tls,
}

impl Server {
    /// Listens on `address`, for whom `access` allows.
    pub fn bind(address: SocketAddr, access: Access) -> Result<Self, ExporterError> {
        access.check_address(address)?;
        let tls = Tls::new(&access)?;
        let listening = lockstep_serve::listen(address);
        let (listener, address) = listening.map_err(|source| ExporterError::Bind {
            address: address.to_string(),
            source,
        })?;
        Ok(Self {
            address,
            listener,
            access,
            tls,
        })
    }

    /// Where figures are.
    pub fn url(&self) -> String {
        let scheme = if self.access.tls.is_some() {
            "https"
        } else {
            "http"
        };
        format!("{scheme}://{}/metrics", self.address)
    }

    /// Serves until the process ends.
    pub fn run(self, shared: &Shared) -> Result<(), ExporterError> {
        let address = self.address;
        let (access, tls) = (Arc::new(self.access), Arc::new(self.tls));
        let served =
            lockstep_serve::connections(self.listener, MOST_CONNECTIONS, |stream, peer| {
                let tls = Arc::clone(&tls);
                let visit = Visit {
                    access: Arc::clone(&access),
                    shared: shared.clone(),
                    peer,
                    server: address,
                };
                async move {
                    // A connection that breaks, or takes too long, is its peer's affair.
                    let _ = tokio::time::timeout(LONGEST, tls.serve(stream, visit)).await;
                }
            });
        served.map_err(|source| ExporterError::Bind {
            address: address.to_string(),
            source,
        })
    }
}

/// One connection.
pub(crate) struct Visit {
    access: Arc<Access>,
    shared: Shared,
    peer: SocketAddr,
    server: SocketAddr,
}

impl Visit {
    /// Answers the requests that come over `stream`.
    pub(crate) async fn serve(self, stream: impl AsyncRead + AsyncWrite + Unpin) {
        lockstep_serve::requests(stream, |request| std::future::ready(self.answer(&request))).await;
    }

    fn answer(&self, request: &Request<Incoming>) -> Answer {
        let authorization = request.headers().get(AUTHORIZATION);
        let authorization = authorization.and_then(|value| value.to_str().ok());
        if !self.access.allows(self.peer, self.server, authorization) {
            return text(
                StatusCode::UNAUTHORIZED,
                "figures are for the user who serves them, and for those who have the token\n",
            );
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return text(StatusCode::METHOD_NOT_ALLOWED, "GET /metrics\n");
        }
        match request.uri().path() {
            "/metrics" => {
                let mut answer = text(StatusCode::OK, prometheus::page(&self.shared.get()));
                let kind = HeaderValue::from_static(prometheus::CONTENT_TYPE);
                answer.headers_mut().insert(CONTENT_TYPE, kind);
                answer
            }
            _ => text(StatusCode::NOT_FOUND, "figures are at /metrics\n"),
        }
    }
}

fn text(status: StatusCode, text: impl Into<Bytes>) -> Answer {
    let mut answer = lockstep_serve::text(status, text);
    if status == StatusCode::UNAUTHORIZED {
        let bearer = HeaderValue::from_static("Bearer");
        answer.headers_mut().insert(WWW_AUTHENTICATE, bearer);
    }
    answer
}
