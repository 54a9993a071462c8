//! Which proxy the environment names for a URI.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hyper::Uri;
use hyper::header::HeaderValue;
use percent_encoding::percent_decode_str;

use super::Error;

/// Where a proxy may be named; the first counts.
const VARIABLES: [&str; 6] = [
    "ALL_PROXY",
    "all_proxy",
    "HTTPS_PROXY",
    "https_proxy",
    "HTTP_PROXY",
    "http_proxy",
];

/// A proxy that tunnels by CONNECT.
pub(super) struct Proxy {
    /// Where it is, without credentials.
    pub(super) uri: Uri,
    /// Its `Proxy-Authorization`.
    pub(super) authorization: Option<HeaderValue>,
}

impl Proxy {
    /// The proxy for a URI; `None` where none is named, or NO_PROXY lists the host.
    pub(super) fn from_environment(uri: &Uri) -> Result<Option<Self>, Error> {
        Self::choose(uri.host().unwrap_or_default(), |name| {
            std::env::var(name).ok().filter(|value| !value.is_empty())
        })
    }

    /// As [`Self::from_environment`], with the environment given.
    pub(super) fn choose(host: &str, variable: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, Error> {
        let Some((name, text)) = VARIABLES.iter().find_map(|name| Some((*name, variable(name)?))) else {
            return Ok(None);
        };
        let without = variable("NO_PROXY")
            .or_else(|| variable("no_proxy"))
            .unwrap_or_default();
        if without.split(',').any(|entry| is_listed(entry.trim(), host)) {
            return Ok(None);
        }
        // The text may hold a password, so that an error only names the variable.
        Self::parse(&text).map(Some).ok_or(Error::Proxy(name))
    }

    fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = text.trim().split_once("://").unwrap_or(("http", text.trim()));
        let scheme = scheme.to_ascii_lowercase();
        let rest = rest.split('/').next()?;
        let (user, place) = match rest.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, rest),
        };
        let uri: Uri = format!("{scheme}://{place}/").parse().ok()?;
        if !matches!(scheme.as_str(), "http" | "https") || uri.host().is_none_or(str::is_empty) {
            return None;
        }
        let authorization = match user {
            Some(user) => Some(basic(user)?),
            None => None,
        };
        Some(Self { uri, authorization })
    }
}

fn basic(user: &str) -> Option<HeaderValue> {
    let (name, password) = user.split_once(':').unwrap_or((user, ""));
    let mut plain: Vec<u8> = percent_decode_str(name).collect();
    plain.push(b':');
    plain.extend(percent_decode_str(password));
    let mut value = HeaderValue::from_str(&format!("Basic {}", BASE64_STANDARD.encode(plain))).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Whether an entry of NO_PROXY means a host: `*`, a host, `.suffix`, `*.suffix` or `prefix.*`.
fn is_listed(entry: &str, host: &str) -> bool {
    let bare = |text: &str| text.trim_matches(['[', ']']).to_ascii_lowercase();
    let (entry, host) = (entry.to_ascii_lowercase(), bare(host));
    match entry.as_str() {
        "" => false,
        "*" => true,
        entry if entry.starts_with("*.") => host.ends_with(&entry[1..]),
        entry if entry.starts_with('.') => host.ends_with(entry),
        entry if entry.ends_with(".*") => host.starts_with(&entry[..entry.len() - 1]),
        entry => host == bare(entry),
    }
}
