//! Which earlier measurement a later one is held against.

use indexmap::IndexMap;

use super::Measured;
use crate::config::problem::Problem;

/// Measurements of both sides, in pairs and alone.
pub(super) struct Pairs<T> {
    pub matched: Vec<(Measured, T, T)>,
    pub only_before: Vec<Measured>,
    pub only_after: Vec<Measured>,
    /// Points with several measurements of which nothing says which belong together.
    pub ambiguous: Vec<Problem>,
}

/// Pairs measurements of one point. Where there are several, those that are the `same` belong together, and what then is
/// left on each side does if it is alone.
pub(super) fn pair<T>(
    before: Vec<(Measured, T)>,
    after: Vec<(Measured, T)>,
    same: impl Fn(&T, &T) -> bool,
) -> Pairs<T> {
    let mut points: IndexMap<Measured, (Vec<T>, Vec<T>)> = IndexMap::new();
    for (measured, value) in before {
        points.entry(measured).or_default().0.push(value);
    }
    for (measured, value) in after {
        points.entry(measured).or_default().1.push(value);
    }
    let mut pairs = Pairs {
        matched: Vec::new(),
        only_before: Vec::new(),
        only_after: Vec::new(),
        ambiguous: Vec::new(),
    };
    for (measured, (before, mut after)) in points {
        let mut left = Vec::new();
        for value in before {
            match after.iter().position(|other| same(&value, other)) {
                Some(at) => pairs.matched.push((measured.clone(), value, after.remove(at))),
                None => left.push(value),
            }
        }
        match (left.len(), after.len()) {
            (1, 1) => pairs
                .matched
                .extend(left.pop().zip(after.pop()).map(|(a, b)| (measured, a, b))),
            (count, 0) => pairs.only_before.extend(vec![measured; count]),
            (0, count) => pairs.only_after.extend(vec![measured; count]),
            (before, after) => {
                let message = format!("{measured}: {before} earlier and {after} later measurements of one point");
                let hint = "compare runs whose configs differ in what a point is made of";
                pairs.ambiguous.push(Problem::file("", message).hint(hint));
            }
        }
    }
    pairs
}
