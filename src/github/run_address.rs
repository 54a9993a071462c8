//! How people name a run: by its number, or by the address of its page.

use std::str::FromStr;

use crate::changelog::link::Slug;

/// A run as it was named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunAddress {
    /// Its number.
    pub id: u64,
    /// Where it is and on which server, where an address says so.
    pub place: Option<Place>,
}

/// What an address says beside the number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The server, such as `https://github.com`.
    pub server: String,
    /// The repository.
    pub repository: Slug,
}

impl FromStr for RunAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "the number of a run, or the address of its page (https://github.com/OWNER/NAME/actions/runs/N)";
        let id = |text: &str| match text.parse::<u64>() {
            Ok(id) if id > 0 && text.bytes().all(|byte| byte.is_ascii_digit()) => Ok(id),
            _ => Err(wrong().to_owned()),
        };
        let text = text.trim();
        let Some(rest) = text.strip_prefix("https://") else {
            return Ok(Self {
                id: id(text)?,
                place: None,
            });
        };
        let path = rest.split(['?', '#']).next().unwrap_or_default();
        let mut parts = path.split('/');
        let mut next = || parts.next().filter(|part| !part.is_empty());
        let (Some(host), Some(owner), Some(name)) = (next(), next(), next()) else {
            return Err(wrong().to_owned());
        };
        let (Some("actions"), Some("runs"), Some(number)) = (next(), next(), next()) else {
            return Err(wrong().to_owned());
        };
        if host.contains('@') {
            return Err(wrong().to_owned());
        }
        Ok(Self {
            id: id(number)?,
            place: Some(Place {
                server: format!("https://{host}"),
                repository: format!("{owner}/{name}").parse()?,
            }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_named_by_its_number_or_its_address() {
        for (text, id, repository) in [
            ("77", 77, None),
            (" 77 ", 77, None),
            ("https://github.com/acme/bench/actions/runs/77", 77, Some("acme/bench")),
            ("https://github.com/acme/bench/actions/runs/77/", 77, Some("acme/bench")),
            (
                "https://github.com/acme/bench/actions/runs/77/attempts/2",
                77,
                Some("acme/bench"),
            ),
            (
                "https://github.com/acme/bench/actions/runs/77/job/5?pr=12#step:3:1",
                77,
                Some("acme/bench"),
            ),
        ] {
            let found: RunAddress = text.parse().expect(text);
            let place = found.place.map(|place| place.repository.to_string());
            assert_eq!((found.id, place.as_deref()), (id, repository), "{text}");
        }
        for wrong in [
            "",
            "0",
            "-1",
            "+7",
            "7x",
            "99999999999999999999999",
            "http://github.com/acme/bench/actions/runs/77",
            "https://github.com/acme/bench/actions/runs",
            "https://github.com/acme/bench/actions/runs/x",
            "https://github.com/acme/bench/pull/77",
            "https://user:pw@github.com/acme/bench/actions/runs/77",
            "https://github.com/acme/../bench/actions/runs/77",
        ] {
            assert!(wrong.parse::<RunAddress>().is_err(), "{wrong}");
        }
    }
}
