//! The endpoint: one page of figures over HTTP.

use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;

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
/// A connection that asks for nothing is closed after this.
const PATIENCE: Duration = Duration::from_secs(90);
/// Any connection is closed after this; a scraper opens another one.
const LONGEST: Duration = Duration::from_secs(3600);
/// Bytes of a request's head.
const LARGEST_REQUEST: usize = 16 << 10;

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
        let failed = |source| ExporterError::Bind {
            address: address.to_string(),
            source,
        };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        Ok(Self {
            address: listener.local_addr().map_err(failed)?,
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
        let failed = move |source| ExporterError::Bind {
            address: address.to_string(),
            source,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(failed)?;
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::from_std(self.listener).map_err(failed)?;
            let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
            let (access, tls) = (Arc::new(self.access), Arc::new(self.tls));
            loop {
                let Ok(place) = Arc::clone(&room).acquire_owned().await else {
                    return Ok(());
                };
                let Ok((stream, peer)) = listener.accept().await else {
                    // Out of file descriptors, or the peer is gone already: others may come.
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                };
                let tls = Arc::clone(&tls);
                let visit = Visit {
                    access: Arc::clone(&access),
                    shared: shared.clone(),
                    peer,
                    server: address,
                };
                tokio::spawn(async move {
                    // A connection that breaks, or takes too long, is its peer's affair.
                    let _ = tokio::time::timeout(LONGEST, tls.serve(stream, visit)).await;
                    drop(place);
                });
            }
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
        let service = service_fn(|request| {
            let answer = self.answer(&request);
            async { Ok::<_, Infallible>(answer) }
        });
        // A request that is none is answered by hyper; what is left is a broken connection.
        let _ = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(PATIENCE)
            .max_buf_size(LARGEST_REQUEST)
            .serve_connection(TokioIo::new(stream), service)
            .await;
    }

    fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
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

fn text(status: StatusCode, text: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::new(text.into()));
    *answer.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    answer.headers_mut().insert(CONTENT_TYPE, plain);
    if status == StatusCode::UNAUTHORIZED {
        let bearer = HeaderValue::from_static("Bearer");
        answer.headers_mut().insert(WWW_AUTHENTICATE, bearer);
    }
    answer
}
