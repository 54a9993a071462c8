//! Trying again with growing pauses.

use std::time::Duration;

use super::Failure;

/// The pause before the second attempt; each later one is twice as long.
const FIRST: Duration = Duration::from_secs(1);
/// The longest pause, also where a server asks for a longer one.
const LONGEST: Duration = Duration::from_secs(60);

/// Tries until it works, fails for good, or was tried so often; with how often it was tried.
pub(super) fn tried<T>(most: u32, mut once: impl FnMut() -> Result<T, Failure>) -> (u32, Result<T, Failure>) {
    let mut attempt = 1;
    loop {
        match once() {
            Err(Failure::Again(_, asked)) if attempt < most => std::thread::sleep(pause(attempt, asked)),
            ended => return (attempt, ended),
        }
        attempt += 1;
    }
}

/// How long to wait after an attempt. Up to half of it is chance, so that those that failed together do not come back
/// together.
fn pause(attempt: u32, asked: Option<Duration>) -> Duration {
    let growing = FIRST.saturating_mul(2_u32.saturating_pow(attempt - 1)).min(LONGEST);
    let growing = growing.mul_f64(0.5 + 0.5 * f64::from(chance()) / f64::from(u16::MAX));
    asked.map_or(growing, |asked| asked.max(growing)).min(LONGEST)
}

fn chance() -> u16 {
    use std::hash::{BuildHasher, Hasher};
    // Seeded from the system's randomness.
    let word = std::collections::hash_map::RandomState::new().build_hasher().finish();
    u16::try_from(word & 0xffff).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_come_later_is_tried_and_what_is_refused_is_not() {
        let again = || Failure::Again("busy".to_owned(), Some(Duration::ZERO));
        let mut left = 2;
        let worked = tried(3, || match left {
            1 => Ok(7),
            _ => {
                left -= 1;
                Err(again())
            }
        });
        assert_eq!(worked, (2, Ok(7)));
        assert_eq!(tried::<()>(1, || Err(again())), (1, Err(again())));
        let refused = Failure::Refused("no".to_owned());
        assert_eq!(tried::<()>(5, || Err(refused.clone())), (1, Err(refused)));
    }

    #[test]
    fn pauses_grow_and_end() {
        for (attempt, least, most) in [(1, 0.5, 1.0), (2, 1.0, 2.0), (4, 4.0, 8.0), (30, 30.0, 60.0)] {
            let pause = pause(attempt, None).as_secs_f64();
            assert!((least..=most).contains(&pause), "{attempt}: {pause}");
        }
        assert_eq!(pause(1, Some(Duration::from_secs(20))).as_secs(), 20);
        assert_eq!(pause(1, Some(Duration::from_secs(2000))).as_secs(), 60);
    }
}
