//! Chance that repeats: the same question draws the same number in every run and at every concurrency.

use sha2::{Digest, Sha256};

/// A number in `0.0..1.0` that depends on its arguments alone. `what` keeps draws for different ends apart.
#[must_use]
pub(super) fn draw(seed: u64, what: &str, subject: &str) -> f64 {
    /// How many bits of a hash an `f64` holds exactly.
    const BITS: u32 = f64::MANTISSA_DIGITS;
    let mut hash = Sha256::new();
    hash.update(seed.to_le_bytes());
    hash.update(what.as_bytes());
    hash.update([0]);
    hash.update(subject.as_bytes());
    let digest = hash.finalize();
    let mut head = [0; 8];
    head.copy_from_slice(&digest[..8]);
    (u64::from_le_bytes(head) >> (u64::BITS - BITS)) as f64 / (1u64 << BITS) as f64
}

/// Spreads subjects evenly over `0.0..1.0`, ordered by their draws: of `n` subjects, as near as possible to
/// `share * n` lie under `share`, which single draws would only reach on average.
#[must_use]
pub(super) fn spread(seed: u64, what: &str, subjects: &[&str]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..subjects.len()).collect();
    order.sort_by_cached_key(|at| (draw(seed, what, subjects[*at]).to_bits(), *at));
    let mut places = vec![0.0; subjects.len()];
    for (rank, at) in order.into_iter().enumerate() {
        places[at] = (rank as f64 + 0.5) / subjects.len() as f64;
    }
    places
}

/// Reads a share.
///
/// # Errors
/// Anything but a number from 0 to 1.
pub(super) fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "a share is a number from 0.0 to 1.0".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draw_depends_on_every_argument_and_stays_in_range() {
        let first = draw(1, "a", "q");
        assert_eq!(first, draw(1, "a", "q"));
        assert_ne!(first, draw(2, "a", "q"));
        assert_ne!(first, draw(1, "b", "q"));
        assert_ne!(first, draw(1, "a", "p"));
        let mean = (0..1000).map(|n| draw(0, "a", &n.to_string())).sum::<f64>() / 1000.0;
        assert!((0.45..0.55).contains(&mean), "{mean}");
    }

    #[test]
    fn a_share_of_a_spread_is_exact() {
        let names: Vec<String> = (0..20).map(|n| n.to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let places = spread(7, "order", &names);
        let under = |share: f64| places.iter().filter(|place| **place < share).count();
        let counts = [0.0, 0.05, 0.5, 0.85, 1.0].map(under);
        assert_eq!(counts, [0, 1, 10, 17, 20]);
        assert_ne!(places, spread(8, "order", &names));
    }
}
