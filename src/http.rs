//! Small blocking HTTP: one request and its whole answer, within a time and a size.
//!
//! It is the same hyper and rustls that GitHub's client brings. The runtime lives in here alone, for one request or one
//! [`Session`]; no caller may stand in another one.

mod proxy;
mod session;

pub(crate) use session::Session;

use std::io::{self, Write};
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Method, Response, StatusCode, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connect, HttpConnector};
use hyper_util::rt::TokioExecutor;
use tokio::runtime::Runtime;

use proxy::Proxy;
use session::Kept;

/// The largest body that is read, in bytes, unless a request says otherwise.
const MAX_BODY: u64 = 1 << 20;
/// What a server is told of its client.
const AGENT: &str = concat!("sweepctl/", env!("CARGO_PKG_VERSION"));

/// A request. No proxy is asked and no redirect followed, unless it says so.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    method: Method,
    url: String,
    headers: Vec<(&'static str, String)>,
    body: Bytes,
    timeout: Duration,
    max_body: u64,
    redirects: u32,
    asks_proxy: bool,
    idle: Option<Duration>,
}

/// What a server answered, whatever its status.
#[derive(Debug)]
pub(crate) struct Answer<B = Vec<u8>> {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body: its bytes, or `()` where they were written elsewhere.
    pub body: B,
}

/// Why there is no whole answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The URL, or where a redirect leads, is none of HTTP.
    #[error("bad uri: {0}")]
    Uri(String),
    /// A connection was not made, or broke.
    #[error("io: {0}")]
    Io(String),
    /// The time is over.
    #[error("timeout: global")]
    Timeout,
    /// Nothing came for so long.
    #[error("nothing came for {} s", .0.as_secs())]
    Idle(Duration),
    /// What came is no HTTP, or the request cannot be sent.
    #[error("protocol: {0}")]
    Protocol(String),
    /// The body is larger than this many bytes.
    #[error("the response body is larger than request limit: {0}")]
    TooLarge(u64),
    /// A redirect names no place, or would send a body again.
    #[error("redirect failed")]
    Redirect,
    /// More redirects than are followed.
    #[error("too many redirects")]
    TooManyRedirects,
    /// The environment names a proxy that cannot be asked.
    #[error("{0} names no proxy of http:// or https://")]
    Proxy(&'static str),
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Io(error.to_string())
    }
}

impl Request {
    /// Asks for a URL; `timeout` is for all of it.
    #[must_use]
    pub(crate) fn get(url: &str, timeout: Duration) -> Self {
        Self::new(Method::GET, url, timeout)
    }

    /// As [`Self::get`], for the headers alone.
    #[must_use]
    pub(crate) fn head(url: &str, timeout: Duration) -> Self {
        Self::new(Method::HEAD, url, timeout)
    }

    /// Sends a body to a URL.
    #[must_use]
    pub(crate) fn post(url: &str, body: impl Into<Bytes>, timeout: Duration) -> Self {
        Self {
            body: body.into(),
            ..Self::new(Method::POST, url, timeout)
        }
    }

    fn new(method: Method, url: &str, timeout: Duration) -> Self {
        Self {
            method,
            url: url.to_owned(),
            headers: Vec::new(),
            body: Bytes::new(),
            timeout,
            max_body: MAX_BODY,
            redirects: 0,
            asks_proxy: false,
            idle: None,
        }
    }

    /// Adds a header.
    #[must_use]
    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Adds a bearer token, where there is one.
    #[must_use]
    pub(crate) fn bearer(self, token: Option<&str>) -> Self {
        match token {
            Some(token) => self.header("authorization", format!("Bearer {token}")),
            None => self,
        }
    }

    /// Bounds the body, in bytes.
    #[must_use]
    pub(crate) fn limit(mut self, bytes: u64) -> Self {
        self.max_body = bytes;
        self
    }

    /// Follows so many redirects; one more is an error. No token is sent along.
    #[must_use]
    pub(crate) fn redirects(mut self, most: u32) -> Self {
        self.redirects = most;
        self
    }

    /// Asks the proxy that the environment names, except for what NO_PROXY lists.
    #[must_use]
    pub(crate) fn with_proxy(mut self) -> Self {
        self.asks_proxy = true;
        self
    }

    /// Bounds the wait for the answer, and for each part of its body: a slow server is waited for, a silent one is not.
    #[must_use]
    pub(crate) fn idle(mut self, most: Duration) -> Self {
        self.idle = Some(most);
        self
    }

    /// Sends it.
    ///
    /// # Errors
    /// No whole answer; a status is none.
    pub(crate) fn send(&self) -> Result<Answer, Error> {
        let mut body = Vec::new();
        let answer = self.send_to(&mut body)?;
        Ok(Answer {
            status: answer.status,
            headers: answer.headers,
            body,
        })
    }

    /// Sends it, and writes the answer's body as it comes.
    ///
    /// # Errors
    /// As [`Self::send`], and what writing fails with.
    pub(crate) fn send_to(&self, out: &mut dyn Write) -> Result<Answer<()>, Error> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let ended = self.run(&runtime, None, out);
        // A name that is still looked up holds up nobody.
        runtime.shutdown_background();
        ended
    }

    fn run(&self, runtime: &Runtime, kept: Option<&Kept>, out: &mut dyn Write) -> Result<Answer<()>, Error> {
        let ended = runtime.block_on(async { tokio::time::timeout(self.timeout, self.exchange(kept, out)).await });
        ended.map_err(|_| Error::Timeout)?
    }

    async fn exchange(&self, kept: Option<&Kept>, out: &mut dyn Write) -> Result<Answer<()>, Error> {
        let mut uri: Uri = self.url.parse().map_err(|_| Error::Uri(self.url.clone()))?;
        let mut method = self.method.clone();
        let mut followed = 0;
        loop {
            let response = self.in_time(self.ask(&method, &uri, followed > 0, kept)).await??;
            let is_redirect = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
            if self.redirects == 0 || !is_redirect {
                return self.take(response, out).await;
            }
            if followed == self.redirects {
                return Err(Error::TooManyRedirects);
            }
            followed += 1;
            uri = target(&uri, response.headers())?;
            if method == Method::POST {
                if matches!(response.status().as_u16(), 307 | 308) {
                    return Err(Error::Redirect);
                }
                method = Method::GET;
            }
        }
    }

    /// What comes before the wait for it is too long.
    async fn in_time<T>(&self, coming: impl Future<Output = T>) -> Result<T, Error> {
        match self.idle {
            Some(most) => tokio::time::timeout(most, coming).await.map_err(|_| Error::Idle(most)),
            None => Ok(coming.await),
        }
    }

    /// The answer of one server, its body unread.
    async fn ask(
        &self,
        method: &Method,
        uri: &Uri,
        is_redirected: bool,
        kept: Option<&Kept>,
    ) -> Result<Response<Incoming>, Error> {
        let is_https = match (uri.scheme_str(), uri.host()) {
            (Some("http"), Some(_)) => false,
            (Some("https"), Some(_)) => true,
            _ => return Err(Error::Uri(uri.to_string())),
        };
        let request = self.request(method, uri, is_redirected)?;
        let proxy = match self.asks_proxy {
            true => Proxy::from_environment(uri)?,
            false => None,
        };
        match (proxy, kept) {
            (None, Some(client)) => client.request(request).await.map_err(|error| reason(&error)),
            (Some(proxy), _) => {
                let request = with_port(request)?;
                let mut tunnel = Tunnel::new(proxy.uri, tls(plain())?);
                if let Some(authorization) = proxy.authorization {
                    tunnel = tunnel.with_auth(authorization);
                }
                sent(tls(tunnel)?, request).await
            }
            (None, None) if is_https => sent(tls(plain())?, request).await,
            (None, None) => sent(plain(), request).await,
        }
    }

    fn request(&self, method: &Method, uri: &Uri, is_redirected: bool) -> Result<hyper::Request<Full<Bytes>>, Error> {
        let body = if *method == Method::POST {
            self.body.clone()
        } else {
            Bytes::new()
        };
        let mut request = hyper::Request::builder()
            .method(method.clone())
            .uri(uri.clone())
            .header(header::USER_AGENT, AGENT)
            .header(header::ACCEPT, "*/*");
        for (name, value) in &self.headers {
            if is_redirected && name.eq_ignore_ascii_case("authorization") {
                continue;
            }
            let mut value = HeaderValue::from_str(value)
                .map_err(|_| Error::Protocol(format!("the header {name} has an illegal value")))?;
            value.set_sensitive(true);
            request = request.header(*name, value);
        }
        request
            .body(Full::new(body))
            .map_err(|error| Error::Protocol(error.to_string()))
    }

    async fn take(&self, response: Response<Incoming>, out: &mut dyn Write) -> Result<Answer<()>, Error> {
        let (parts, mut body) = response.into_parts();
        let mut read = 0;
        while let Some(frame) = self.in_time(body.frame()).await? {
            let Ok(data) = frame.map_err(|error| reason(&error))?.into_data() else {
                continue;
            };
            read += data.len() as u64;
            if read > self.max_body {
                return Err(Error::TooLarge(self.max_body));
            }
            out.write_all(&data)?;
        }
        Ok(Answer {
            status: parts.status,
            headers: parts.headers,
            body: (),
        })
    }
}

/// A connection over TCP; what is spoken over it is the caller's.
fn plain() -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    connector.enforce_http(false);
    connector
}

/// A connection with TLS where a URI says https; it trusts what the host trusts.
fn tls<C>(connector: C) -> Result<HttpsConnector<C>, Error> {
    let builder = HttpsConnectorBuilder::new().with_native_roots()?;
    Ok(builder.https_or_http().enable_http1().wrap_connector(connector))
}

async fn sent<C>(connector: C, request: hyper::Request<Full<Bytes>>) -> Result<Response<Incoming>, Error>
where
    C: Connect + Clone + Send + Sync + 'static,
{
    let client = Client::builder(TokioExecutor::new()).build(connector);
    client.request(request).await.map_err(|error| reason(&error))
}

/// A request that names its port: a tunnel takes 443 for one that does not, of http too.
fn with_port(mut request: hyper::Request<Full<Bytes>>) -> Result<hyper::Request<Full<Bytes>>, Error> {
    let uri = request.uri();
    if uri.scheme_str() == Some("http")
        && uri.port().is_none()
        && let Some(host) = uri.host()
    {
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let whole = format!("http://{host}:80{path}");
        *request.uri_mut() = whole.parse().map_err(|_| Error::Uri(whole))?;
    }
    Ok(request)
}

/// Where a redirect leads.
fn target(from: &Uri, headers: &HeaderMap) -> Result<Uri, Error> {
    let location = headers.get(header::LOCATION).and_then(|value| value.to_str().ok());
    let location = location.ok_or(Error::Redirect)?;
    let location = location.split('#').next().unwrap_or_default();
    let (Some(scheme), Some(authority)) = (from.scheme_str(), from.authority()) else {
        return Err(Error::Redirect);
    };
    let folder = from.path().rsplit_once('/').map_or("", |(folder, _)| folder);
    let whole = match location {
        whole if whole.contains("://") => whole.to_owned(),
        rest if rest.starts_with("//") => format!("{scheme}:{rest}"),
        path if path.starts_with('/') => format!("{scheme}://{authority}{path}"),
        name => format!("{scheme}://{authority}{folder}/{name}"),
    };
    whole.parse().map_err(|_| Error::Uri(whole))
}

/// The innermost reason: the outer ones only say that a request failed.
fn reason(error: &(dyn std::error::Error + 'static)) -> Error {
    let mut innermost = error;
    let mut is_io = error.is::<io::Error>();
    while let Some(source) = innermost.source() {
        innermost = source;
        is_io |= source.is::<io::Error>();
    }
    match is_io {
        true => Error::Io(innermost.to_string()),
        false => Error::Protocol(innermost.to_string()),
    }
}

#[cfg(test)]
mod tests;
