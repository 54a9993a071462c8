//! Connections that outlive a request: for many requests from one thread.

use std::io::Write;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::runtime::Runtime;

use super::{Answer, Error, Request, plain, tls};

/// A client that keeps its connections between requests.
pub(super) type Kept = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// A thread's connections, with the runtime that they live in. Certificates are read once for all of its requests.
pub(crate) struct Session {
    runtime: Runtime,
    client: Kept,
}

impl Session {
    /// Connects to nothing yet.
    ///
    /// # Errors
    /// No runtime, and no certificate store.
    pub(crate) fn new() -> Result<Self, Error> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let client = Client::builder(TokioExecutor::new()).build(tls(plain())?);
        Ok(Self { runtime, client })
    }

    /// Sends a request, as [`Request::send`] does.
    ///
    /// # Errors
    /// As [`Request::send`].
    pub(crate) fn send(&self, request: &Request) -> Result<Answer, Error> {
        let mut body = Vec::new();
        let answer = self.send_to(request, &mut body)?;
        Ok(Answer {
            status: answer.status,
            headers: answer.headers,
            body,
        })
    }

    /// Sends a request and writes the answer's body as it comes, as [`Request::send_to`] does.
    ///
    /// # Errors
    /// As [`Request::send_to`].
    pub(crate) fn send_to(&self, request: &Request, out: &mut dyn Write) -> Result<Answer<()>, Error> {
        request.run(&self.runtime, Some(&self.client), out)
    }
}
