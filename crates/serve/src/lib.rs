//! What the HTTP servers share: connections bounded in number, requests bounded in size and time, and tokens.
//!
//! Start reading at [`connections`].

mod token;

pub use token::{fresh_token, same_token};

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

/// A connection that asks for nothing is closed after this.
const PATIENCE: Duration = Duration::from_secs(90);
/// Bytes of a request's head.
const LARGEST_REQUEST: usize = 16 << 10;

/// An answer with a body that is known.
pub type Answer = Response<Full<Bytes>>;

/// Listens on `address`; says where, as a port of 0 takes a free one.
///
/// # Errors
/// The address is taken, or not ours.
pub fn listen(address: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

/// Takes connections until the process ends, `most` at a time; more wait. Each is `serve`'s affair.
///
/// # Errors
/// The system gives no threads or sockets.
pub fn connections<Served>(
    listener: TcpListener,
    most: usize,
    serve: impl Fn(TcpStream, SocketAddr) -> Served,
) -> io::Result<()>
where
    Served: Future<Output = ()> + Send + 'static,
{
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async move {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let room = Arc::new(Semaphore::new(most));
        loop {
            let Ok(place) = Arc::clone(&room).acquire_owned().await else {
                return Ok(());
            };
            let Ok((stream, peer)) = listener.accept().await else {
                // Out of file descriptors, or the peer is gone already: others may come.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let served = serve(stream, peer);
            tokio::spawn(async move {
                served.await;
                drop(place);
            });
        }
    })
}

/// Answers the requests of a connection, one after the other.
pub async fn requests<Answered>(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    answer: impl Fn(Request<Incoming>) -> Answered,
) where
    Answered: Future<Output = Answer>,
{
    let service = service_fn(|request| {
        let answered = answer(request);
        async { Ok::<_, Infallible>(answered.await) }
    });
    // A request that is none is answered by hyper; what is left is a broken connection.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .max_buf_size(LARGEST_REQUEST)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

/// An answer in plain text.
pub fn text(status: StatusCode, text: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(text.into()));
    *answer.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    answer.headers_mut().insert(CONTENT_TYPE, plain);
    answer
}
