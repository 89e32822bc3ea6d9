//! The server: pages and answers over HTTP, for this machine and whoever knows the token.

use crate::answers::{self, Question};
use crate::assets::{ASSETS, Asset};
use crate::error::ViewError;
use crate::store::Folder;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use lockstep_run_folder::series::Part;
use lockstep_serve::{Answer, fresh_token, same_token};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;

/// Connections at a time; more wait.
const MOST_CONNECTIONS: usize = 32;

/// What a browser may do with the page: run its own scripts and ask its own server, nothing else. A name of a kernel
/// that carries markup can load and run nothing.
const HEADERS: [(&str, &str); 4] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-resource-policy", "same-origin"),
];

/// A page over some run folders.
pub struct Viewer {
    listener: TcpListener,
    address: SocketAddr,
    site: Site,
}

struct Site {
    folders: Vec<Folder>,
    token: String,
    /// What this server is called by those who mean it: another name is that of a page that tricks the browser.
    hosts: [String; 2],
}

impl Viewer {
    /// Reads the folders and listens on a port of this machine; 0 takes a free one.
    ///
    /// # Errors
    /// No run left a folder, or the port is taken.
    pub fn bind(folders: &[PathBuf], port: u16) -> Result<Self, ViewError> {
        let folders = folders.iter().map(|path| Folder::open(path));
        let folders = folders.collect::<Result<Vec<_>, _>>()?;
        let asked = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let failed = |error| ViewError::Bind {
            address: asked.to_string(),
            error,
        };
        let (listener, address) = lockstep_serve::listen(asked).map_err(failed)?;
        Ok(Self {
            listener,
            address,
            site: Site {
                folders,
                token: fresh_token().map_err(ViewError::Token)?,
                hosts: [address.to_string(), format!("localhost:{}", address.port())],
            },
        })
    }

    /// The address of the page.
    pub fn url(&self) -> String {
        format!("http://{}/{}/", self.address, self.site.token)
    }

    /// Serves until the process ends.
    ///
    /// # Errors
    /// The system gives no threads or sockets.
    pub fn run(self) -> Result<(), ViewError> {
        let site = Arc::new(self.site);
        read_ahead(&site);
        let served = lockstep_serve::connections(self.listener, MOST_CONNECTIONS, |stream, _| {
            let site = Arc::clone(&site);
            async move {
                lockstep_serve::requests(stream, |request| Arc::clone(&site).answer(request)).await;
            }
        });
        served.map_err(|error| ViewError::Bind {
            address: self.address.to_string(),
            error,
        })
    }
}

/// Begins to read long series while a browser starts, each kind of part on a thread of its own. What gets no thread is
/// read when it is asked for.
fn read_ahead(site: &Arc<Site>) {
    for part in Part::ALL {
        let site = Arc::clone(site);
        let read = move || site.folders.iter().for_each(|one| one.read_ahead(part));
        let _ = std::thread::Builder::new()
            .name(format!("read {}", part.name()))
            .spawn(read);
    }
}

impl Site {
    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Answer {
        let host = request.headers().get(HOST);
        let host = host.and_then(|host| host.to_str().ok()).unwrap_or("");
        if !self.hosts.iter().any(|own| own == host) {
            return text(
                StatusCode::FORBIDDEN,
                "this page is for this machine alone\n",
            );
        }
        if *request.method() != Method::GET {
            return text(StatusCode::METHOD_NOT_ALLOWED, "GET\n");
        }
        let path = request.uri().path().trim_start_matches('/');
        let (given, rest) = path.split_once('/').unwrap_or((path, ""));
        if !same_token(given, &self.token) {
            return text(
                StatusCode::NOT_FOUND,
                "the address of the page is the one that `lockstep view` has printed, with its token\n",
            );
        }
        if let Some(what) = rest.strip_prefix("api/") {
            let question = Question::parse(request.uri().query().unwrap_or(""));
            let (site, what) = (Arc::clone(&self), what.to_string());
            // Reading a long series takes a while, and others ask meanwhile.
            let work = move || answers::answer(&site.folders, &what, &question);
            let Ok(answer) = tokio::task::spawn_blocking(work).await else {
                return text(StatusCode::INTERNAL_SERVER_ERROR, "no answer\n");
            };
            return match answer {
                Ok(Some(value)) => with_kind(value.to_string(), "application/json"),
                Ok(None) => text(StatusCode::NOT_FOUND, "there is no such question\n"),
                Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
            };
        }
        let name = if rest.is_empty() { "index.html" } else { rest };
        match ASSETS.iter().find(|asset| asset.name == name) {
            Some(Asset { kind, bytes, .. }) => with_kind(*bytes, kind),
            None => text(StatusCode::NOT_FOUND, "there is no such page\n"),
        }
    }
}

fn text(status: StatusCode, text: impl Into<Bytes>) -> Answer {
    let mut answer = with_kind(text, "text/plain; charset=utf-8");
    *answer.status_mut() = status;
    answer
}

fn with_kind(bytes: impl Into<Bytes>, kind: &'static str) -> Answer {
    let mut answer = Response::new(Full::new(bytes.into()));
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    for (name, value) in HEADERS {
        headers.insert(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
    }
    answer
}
