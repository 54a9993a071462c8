//! What a replay is sent to, and whose metrics are read meanwhile.

use hyper::Uri;
use serde::Serialize;

use crate::config::problem::{Problem, Problems};
use crate::step::eval::job::Job;

/// The port of servers that say none.
const PORT: &str = "8888";

/// The server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Target {
    /// Its URL, such as `http://localhost:8888`.
    pub url: String,
    /// What named it.
    pub from: &'static str,
}

/// An endpoint of metrics in the text form of Prometheus.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MetricsEndpoint {
    /// Its URL, as the client writes it into its export.
    pub url: String,
    /// What named it.
    pub from: &'static str,
}

impl Target {
    /// The server: the one that is asked for, else the frontend's host and port, else AIPERF_SERVER_URL, else PORT here.
    ///
    /// # Errors
    /// What is no URL of a server.
    pub fn of(asked: Option<&str>, job: &Job) -> Result<Self, Problem> {
        let (url, from) = if let Some(url) = asked {
            (url.to_owned(), "--endpoint")
        } else if let Some(host) = job.text("SRT_FRONTEND_HOST") {
            let port = job.text("SRT_FRONTEND_PORT").ok_or_else(|| {
                let problem = Problem::file("", "SRT_FRONTEND_HOST is set, and SRT_FRONTEND_PORT is not");
                problem.hint("set both, or neither and AIPERF_SERVER_URL")
            })?;
            // An IPv6 address is told from its port by brackets.
            let host = match host.contains(':') && !host.starts_with('[') {
                true => format!("[{host}]"),
                false => host.to_owned(),
            };
            (format!("http://{host}:{port}"), "SRT_FRONTEND_HOST")
        } else if let Some(url) = job.text("AIPERF_SERVER_URL") {
            (url.to_owned(), "AIPERF_SERVER_URL")
        } else {
            let port = job.text("PORT").unwrap_or(PORT);
            (format!("http://localhost:{port}"), "PORT")
        };
        let url = url.trim_end_matches('/');
        let url = url.strip_suffix("/v1").unwrap_or(url).to_owned();
        checked(&url, from)?;
        Ok(Self { url, from })
    }
}

impl MetricsEndpoint {
    /// The endpoints of a replay's servers: those that are asked for, else those of AIPERF_SERVER_METRICS_URLS, else the
    /// workers' that srt-slurm names, unless its frontend is Dynamo's, which is read with the target. None where
    /// nothing names any: then the target's own are.
    ///
    /// # Errors
    /// Everything that is no URL of an endpoint.
    pub fn of(asked: &[String], job: &Job) -> Result<Vec<Self>, Problems> {
        let mut problems = Problems::default();
        let mut found: Vec<Self> = Vec::new();
        let mut take = |text: &str, from: &'static str| {
            let url = with_metrics(text);
            match checked(&url, from) {
                Ok(()) if found.iter().all(|known| known.url != url) => found.push(Self { url, from }),
                Ok(()) => {}
                Err(problem) => problems.push(problem),
            }
        };
        if !asked.is_empty() {
            asked.iter().for_each(|url| take(url, "--metrics"));
        } else if let Some(list) = job.text("AIPERF_SERVER_METRICS_URLS") {
            list.split(',')
                .for_each(|url| take(url.trim(), "AIPERF_SERVER_METRICS_URLS"));
        } else if job.text("SRTCTL_FRONTEND_TYPE") != Some("dynamo") {
            let workers: &[&'static str] = match job.text("SRT_AGG_ENDPOINTS") {
                Some(_) => &["SRT_AGG_ENDPOINTS"],
                None => &["SRT_PREFILL_ENDPOINTS", "SRT_DECODE_ENDPOINTS"],
            };
            for name in workers {
                let list = job.text(name).unwrap_or_default();
                let urls = list.split(|c: char| c == ',' || c.is_whitespace());
                urls.filter(|url| !url.is_empty()).for_each(|url| take(url, name));
            }
        }
        problems.into_result()?;
        Ok(found)
    }

    /// The endpoint of the target itself.
    #[must_use]
    pub fn of_target(target: &Target) -> Self {
        Self {
            url: with_metrics(&target.url),
            from: target.from,
        }
    }
}

/// A metrics URL in the form that the client makes of it (aiperf/common/metric_utils.py of agentx-harness 1.0.12): with a
/// scheme, and `/metrics` at its end.
fn with_metrics(text: &str) -> String {
    let url = match text.starts_with("http://") || text.starts_with("https://") || text.is_empty() {
        true => text.to_owned(),
        false => format!("http://{text}"),
    };
    let url = url.trim_end_matches('/');
    match url.ends_with("/metrics") || url.is_empty() {
        true => url.to_owned(),
        false => format!("{url}/metrics"),
    }
}

fn checked(url: &str, from: &str) -> Result<(), Problem> {
    let refused = |why: &str| {
        let problem = Problem::file("", format!("{from}: `{}` is no endpoint: {why}", url.escape_debug()));
        problem.hint("write it as http://HOST:PORT; several have commas between")
    };
    if url.is_empty() {
        return Err(refused("it is empty"));
    }
    let uri: Uri = url.parse().map_err(|_| refused("it is no URL"))?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err(refused("it starts with neither http:// nor https://"));
    }
    let Some(authority) = uri.authority().filter(|authority| !authority.host().is_empty()) else {
        return Err(refused("it names no host"));
    };
    if authority.as_str().contains('@') {
        return Err(refused(
            "it carries credentials, which the command and the results would show",
        ));
    }
    // The command is kept as text, and shells split it at spaces.
    if uri.query().is_some() || url.contains([',', '\'', '"', '*', '[']) && !authority.host().starts_with('[') {
        return Err(refused("it holds more than a host, a port and a path"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(variables: &[(&str, &str)]) -> Job {
        let all = variables.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned()));
        Job::new(None, all)
    }

    #[test]
    fn the_target_in_its_order() {
        let mut all = vec![
            ("SRT_FRONTEND_HOST", "head"),
            ("SRT_FRONTEND_PORT", "8000"),
            ("AIPERF_SERVER_URL", "http://h:1/v1/"),
            ("PORT", "9"),
        ];
        let of = |asked, all: &[(&str, &str)]| {
            let target = Target::of(asked, &job(all)).expect("a target");
            (target.url, target.from)
        };
        assert_eq!(of(Some("http://a:1/"), &all), ("http://a:1".to_owned(), "--endpoint"));
        assert_eq!(of(None, &all), ("http://head:8000".to_owned(), "SRT_FRONTEND_HOST"));
        all.drain(..2);
        assert_eq!(of(None, &all), ("http://h:1".to_owned(), "AIPERF_SERVER_URL"));
        all.remove(0);
        assert_eq!(of(None, &all), ("http://localhost:9".to_owned(), "PORT"));
        assert_eq!(of(None, &[]), ("http://localhost:8888".to_owned(), "PORT"));
        let six = [("SRT_FRONTEND_HOST", "fd00::1"), ("SRT_FRONTEND_PORT", "80")];
        assert_eq!(of(None, &six).0, "http://[fd00::1]:80");
        assert!(Target::of(None, &job(&[("SRT_FRONTEND_HOST", "head")])).is_err());
        for bad in ["ftp://a", "a:1", "http://u:p@h", "http://h?x=1", "http://h o"] {
            assert!(Target::of(Some(bad), &job(&[])).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_metrics_in_their_order() {
        let of = |asked: &[&str], all: &[(&str, &str)]| {
            let asked: Vec<String> = asked.iter().map(|url| (*url).to_owned()).collect();
            let found = MetricsEndpoint::of(&asked, &job(all)).map_err(|problems| problems.0.len())?;
            Ok(found
                .into_iter()
                .map(|endpoint| endpoint.url)
                .collect::<Vec<_>>()
                .join(" "))
        };
        let workers = [
            ("SRT_PREFILL_ENDPOINTS", "p1:1,p2:1"),
            ("SRT_DECODE_ENDPOINTS", "http://d1:1 d1:1"),
        ];
        let listed = [
            &workers[..],
            &[("AIPERF_SERVER_METRICS_URLS", "http://a:1/metrics,b:2/")],
        ]
        .concat();
        assert_eq!(of(&["c"], &listed), Ok("http://c/metrics".to_owned()));
        assert_eq!(of(&[], &listed), Ok("http://a:1/metrics http://b:2/metrics".to_owned()));
        assert_eq!(
            of(&[], &workers),
            Ok("http://p1:1/metrics http://p2:1/metrics http://d1:1/metrics".to_owned())
        );
        let dynamo = [&workers[..], &[("SRTCTL_FRONTEND_TYPE", "dynamo")]].concat();
        assert_eq!(of(&[], &dynamo), Ok(String::new()));
        let aggregated = [&workers[..], &[("SRT_AGG_ENDPOINTS", "x:1")]].concat();
        assert_eq!(of(&[], &aggregated), Ok("http://x:1/metrics".to_owned()));
        assert_eq!(of(&[], &[("AIPERF_SERVER_METRICS_URLS", "a,,b c,http://u@h")]), Err(3));
    }
}
