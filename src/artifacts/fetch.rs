//! Fetching side by side: each artifact is located, downloaded, held against its digest, unpacked, and put in place.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hyper::Uri;
use hyper::header::{CONTENT_DISPOSITION, CONTENT_TYPE, HeaderMap, HeaderName};
use percent_encoding::percent_decode_str;
use sha2::{Digest, Sha256};

use super::archive::{self, Limits};
use super::folder::{Folder, Held, Note};
use super::report::{Outcome, State};
use super::retry::tried;
use super::{Failure, Listed, Service};
use crate::config::problem::{Problem, printable};
use crate::github::client::budget::retry_after;
use crate::http::{Request, Session};
use crate::matrix::fingerprint::hex;
use crate::matrix::names::is_legal_artifact;

/// How long a download may take.
const WHOLE: Duration = Duration::from_secs(60 * 60);
/// How long a server may be silent.
const SILENCE: Duration = Duration::from_secs(30);
/// Redirects of a content that are followed.
const REDIRECTS: u32 = 3;
/// What says that a content is an archive; anything else is the one file that was uploaded as it is.
const ARCHIVES: [&str; 3] = [
    "application/zip",
    "application/x-zip-compressed",
    "application/zip-compressed",
];
/// What a file is called that says no name.
const NAMELESS: &str = "artifact";

/// How artifacts are fetched.
#[derive(Debug, Clone, Copy)]
pub(crate) struct How {
    /// How many at a time.
    pub parallel: usize,
    /// How often each is tried at most.
    pub attempts: u32,
    /// What one may hold.
    pub limits: Limits,
}

/// Fetches artifacts, all that can be, and says of each what became of it, in their order. `done` is called after each.
///
/// # Errors
/// No certificate store.
pub(crate) fn all(
    service: &dyn Service,
    artifacts: &[Listed],
    folder: &Folder,
    how: How,
    done: &(dyn Fn() + Sync),
) -> Result<Vec<Outcome>, Problem> {
    let threads = how.parallel.clamp(1, artifacts.len().max(1));
    let sessions = (0..threads).map(|_| Session::new()).collect::<Result<Vec<_>, _>>();
    let sessions = sessions.map_err(|error| Problem::file("", format!("nothing can be fetched: {error}")))?;
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(Vec::with_capacity(artifacts.len()));
    std::thread::scope(|scope| {
        for session in sessions {
            let (next, outcomes) = (&next, &outcomes);
            scope.spawn(move || {
                while let Some((index, artifact)) = {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    artifacts.get(index).map(|artifact| (index, artifact))
                } {
                    let outcome = one(service, &session, artifact, folder, how);
                    if let Ok(mut outcomes) = outcomes.lock() {
                        outcomes.push((index, outcome));
                    }
                    done();
                }
            });
        }
    });
    let mut outcomes = outcomes
        .into_inner()
        .map_err(|_| Problem::file("", "a download broke"))?;
    outcomes.sort_by_key(|(index, _)| *index);
    Ok(outcomes.into_iter().map(|(_, outcome)| outcome).collect())
}

fn one(service: &dyn Service, session: &Session, artifact: &Listed, folder: &Folder, how: How) -> Outcome {
    let outcome = Outcome::of(artifact);
    match folder.held(artifact) {
        Held::Whole(note) => return outcome.arrived(State::Kept, &note, 0),
        Held::Foreign => {
            let reason = "something stands under its name that was not fetched: remove it, or name another folder";
            return outcome.lacking(State::Failed, reason.to_owned(), 0);
        }
        Held::Nothing | Held::Stale if artifact.expired => {
            return outcome.lacking(State::Expired, Failure::Expired.reason().to_owned(), 0);
        }
        Held::Nothing | Held::Stale => {}
    }
    let (attempts, ended) = tried(how.attempts, || {
        let address = service.locate(session, artifact)?;
        arrive(session, &address, artifact, folder, how.limits)
    });
    match ended {
        Ok(note) => outcome.arrived(State::Fetched, &note, attempts),
        Err(failure) => {
            let state = match failure {
                Failure::Expired => State::Expired,
                Failure::Again(..) | Failure::Refused(_) => State::Failed,
            };
            outcome.lacking(state, failure.reason().to_owned(), attempts)
        }
    }
}

/// Downloads a content, judges it, and puts it in place.
fn arrive(
    session: &Session,
    address: &str,
    artifact: &Listed,
    folder: &Folder,
    limits: Limits,
) -> Result<Note, Failure> {
    let here = |error: io::Error| Failure::Refused(format!("it cannot be written: {error}"));
    let coming = folder.coming().map_err(here)?;
    let (blob, whole) = (coming.path().join("blob"), coming.path().join("whole"));
    let content = download(session, address, &blob, limits.bytes)?;
    if let Some(wanted) = &artifact.digest
        && *wanted != content.digest
    {
        let reason = format!("{} came, where {} was uploaded", content.digest, printable(wanted));
        return Err(Failure::Again(reason, None));
    }
    std::fs::create_dir(&whole).map_err(here)?;
    let files = match content.file {
        None => {
            let archive = File::open(&blob).map_err(here)?;
            archive::unpack(archive, &whole, limits).map_err(|reason| match artifact.digest {
                Some(_) => Failure::Refused(reason),
                // Without a digest it is not known whether this is what was uploaded.
                None => Failure::Again(reason, None),
            })?
        }
        Some(name) => {
            std::fs::rename(&blob, whole.join(&name)).map_err(here)?;
            BTreeMap::from([(name, content.bytes)])
        }
    };
    let note = Note {
        name: artifact.name.clone(),
        id: artifact.id,
        digest: content.digest,
        files,
    };
    folder.place(&coming, &whole, &note).map_err(here)?;
    Ok(note)
}

/// What was downloaded.
struct Content {
    digest: String,
    bytes: u64,
    /// The name of the one file that it is; `None` of an archive.
    file: Option<String>,
}

fn download(session: &Session, address: &str, to: &Path, most: u64) -> Result<Content, Failure> {
    let file = OpenOptions::new().write(true).create_new(true).open(to);
    let mut file = Hashed {
        file: file.map_err(|error| Failure::Refused(format!("it cannot be written: {error}")))?,
        hash: Sha256::new(),
        bytes: 0,
    };
    let request = Request::get(address, WHOLE)
        .idle(SILENCE)
        .limit(most)
        .redirects(REDIRECTS)
        .with_proxy();
    let answer = session.send_to(&request, &mut file)?;
    match answer.status.as_u16() {
        200 => Ok(Content {
            digest: format!("sha256:{}", hex(&file.hash.finalize())),
            bytes: file.bytes,
            file: (!is_archive(address, &answer.headers)).then(|| file_name(&answer.headers)),
        }),
        410 => Err(Failure::Expired),
        404 => Err(Failure::Refused("its content is gone (404)".to_owned())),
        // An address is valid for a few minutes: the next attempt asks for another.
        status @ (401 | 403 | 408 | 429 | 500..) => {
            let reason = format!("its content was answered with {status}");
            Err(Failure::Again(reason, retry_after(&answer.headers)))
        }
        status => Err(Failure::Refused(format!("its content was answered with {status}"))),
    }
}

fn text(headers: &HeaderMap, name: HeaderName) -> &str {
    headers
        .get(name)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}

fn is_archive(address: &str, headers: &HeaderMap) -> bool {
    let kind = text(headers, CONTENT_TYPE).split(';').next().unwrap_or_default();
    let path = address.parse::<Uri>().map(|uri| uri.path().to_ascii_lowercase());
    ARCHIVES.iter().any(|known| kind.trim().eq_ignore_ascii_case(known))
        || path.is_ok_and(|path| path.ends_with(".zip"))
}

/// The name that a server gives a file: its last part, if a file may be called so.
fn file_name(headers: &HeaderMap) -> String {
    let mut parts = text(headers, CONTENT_DISPOSITION).split(';').map(str::trim);
    let given = |part: &str, start: &str| {
        let (name, value) = part.split_once('=')?;
        name.trim().eq_ignore_ascii_case(start).then(|| value.trim().to_owned())
    };
    let encoded = parts.clone().find_map(|part| {
        let value = given(part, "filename*")?;
        let (_, rest) = value.split_once("''")?;
        percent_decode_str(rest)
            .decode_utf8()
            .ok()
            .map(|name| name.into_owned())
    });
    let name = encoded.or_else(|| parts.find_map(|part| Some(given(part, "filename")?.trim_matches('"').to_owned())));
    let name = name.unwrap_or_default();
    let name = name.rsplit(['/', '\\']).next().unwrap_or_default();
    match is_legal_artifact(name) && super::folder::is_legal(name) {
        true => name.to_owned(),
        false => NAMELESS.to_owned(),
    }
}

/// A file, and the hash of what is written to it.
struct Hashed {
    file: File,
    hash: Sha256,
    bytes: u64,
}

impl Write for Hashed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write(bytes)?;
        self.hash.update(&bytes[..count]);
        self.bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    #[test]
    fn a_file_is_called_as_the_server_says_where_that_is_a_name() {
        for (given, wanted) in [
            (r#"attachment; filename="a b.json""#, "a b.json"),
            ("attachment; filename=a.json", "a.json"),
            ("attachment; filename=x.json; filename*=UTF-8''%C3%A4.json", "ä.json"),
            (r#"attachment; filename="../../etc/passwd""#, "passwd"),
            ("attachment; filename*=UTF-8''..%2F..%2Fpasswd", "passwd"),
            (r#"attachment; filename="..""#, NAMELESS),
            (r#"attachment; filename=".bashrc""#, NAMELESS),
            ("attachment; filename*=UTF-8''a%00b", NAMELESS),
            ("attachment", NAMELESS),
            ("", NAMELESS),
        ] {
            let headers = HeaderMap::from_iter([(CONTENT_DISPOSITION, HeaderValue::from_str(given).expect("a value"))]);
            assert_eq!(file_name(&headers), wanted, "{given}");
        }
    }

    #[test]
    fn an_archive_is_told_by_its_type_or_its_address() {
        let typed = |kind: &'static str| HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(kind))]);
        assert!(is_archive("https://b/x?sig=1", &typed("application/zip")));
        assert!(is_archive("https://b/x", &typed("Application/ZIP; charset=x")));
        assert!(is_archive("https://b/a.zip?sig=1", &typed("application/octet-stream")));
        assert!(!is_archive("https://b/a?sig=b.zip", &typed("application/octet-stream")));
    }
}
