//! Connections with TLS where a certificate was given, and without elsewhere.

use tokio::net::TcpStream;

use crate::access::Access;
use crate::error::ExporterError;
use crate::server::Visit;

/// How connections begin.
pub(crate) struct Tls {
    #[cfg(feature = "tls")]
    acceptor: Option<tokio_rustls::TlsAcceptor>,
}

impl Tls {
    /// Reads the certificate and the key that `access` names.
    #[cfg(feature = "tls")]
    pub(crate) fn new(access: &Access) -> Result<Self, ExporterError> {
        use std::path::Path;
        use std::sync::Arc;

        use tokio_rustls::rustls::ServerConfig;
        use tokio_rustls::rustls::crypto::ring::default_provider;
        use tokio_rustls::rustls::pki_types::pem::PemObject;
        use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

        let secret = |path: &Path, error: &dyn std::fmt::Display| ExporterError::Secret {
            path: path.to_owned(),
            because: error.to_string(),
        };
        let Some((certificate, key)) = &access.tls else {
            return Ok(Self { acceptor: None });
        };
        let chain = CertificateDer::pem_file_iter(certificate)
            .and_then(Iterator::collect)
            .map_err(|error| secret(certificate, &error))?;
        let private = PrivateKeyDer::from_pem_file(key).map_err(|error| secret(key, &error))?;
        let settings = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|builder| {
                builder
                    .with_no_client_auth()
                    .with_single_cert(chain, private)
            })
            .map_err(|error| secret(certificate, &error))?;
        Ok(Self {
            acceptor: Some(Arc::new(settings).into()),
        })
    }

    /// Nothing to read: addresses that need TLS were refused.
    #[cfg(not(feature = "tls"))]
    pub(crate) fn new(_access: &Access) -> Result<Self, ExporterError> {
        Ok(Self {})
    }

    /// Answers the requests of a connection.
    pub(crate) async fn serve(&self, stream: TcpStream, visit: Visit) {
        #[cfg(feature = "tls")]
        if let Some(acceptor) = &self.acceptor {
            // Whoever does not speak TLS is not answered.
            if let Ok(stream) = acceptor.accept(stream).await {
                visit.serve(stream).await;
            }
            return;
        }
        visit.serve(stream).await;
    }
}
