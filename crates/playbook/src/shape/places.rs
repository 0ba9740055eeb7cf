//! Whether two columns are places on the map, told by their values alone.

use super::table::{Table, number};

/// Different values that each of the two must have.
const MIN_VALUES: usize = 20;

/// A latitude and a longitude: two columns side by side, within 90 and 180 degrees, written as
/// finely and spread about as far as each other, and either far from zero for their spread (a
/// region) or all around the globe.
pub(super) fn places(train: &Table, numeric: &[String]) -> Option<[String; 2]> {
    numeric.windows(2).find_map(|names| {
        let [first, second] = names else { return None };
        let (a, b) = (Coordinate::of(train, first)?, Coordinate::of(train, second)?);
        let (latitude, longitude) = if a.reach <= b.reach { (a, b) } else { (b, a) };
        are_places(&latitude, &longitude).then_some([latitude.name, longitude.name])
    })
}

/// What a column says about itself as a coordinate.
struct Coordinate {
    name: String,
    mean: f64,
    deviation: f64,
    least: f64,
    most: f64,
    /// The largest distance from zero.
    reach: f64,
    /// How many digits stand behind the point of the median value.
    decimals: usize,
}

impl Coordinate {
    fn of(train: &Table, name: &str) -> Option<Self> {
        let column = train.column(name).filter(|it| it.distinct().len() > MIN_VALUES)?;
        let values: Vec<f64> = column.present().filter_map(number).collect();
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let deviation = values.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / count;
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut decimals: Vec<usize> = column
            .present()
            .map(|it| it.trim().split_once('.').map_or(0, |it| it.1.trim_end_matches('0').len()))
            .collect();
        decimals.sort_unstable();
        Some(Self {
            name: name.to_owned(),
            mean,
            deviation: deviation.sqrt(),
            least,
            most,
            reach: least.abs().max(most.abs()),
            decimals: decimals.get(decimals.len() / 2).copied().unwrap_or(0),
        })
    }

    fn span(&self) -> f64 {
        self.most - self.least
    }
}

fn are_places(latitude: &Coordinate, longitude: &Coordinate) -> bool {
    let both = [latitude, longitude];
    let ratio = latitude.deviation / longitude.deviation;
    if latitude.reach > 90.0
        || longitude.reach > 180.0
        || latitude.decimals.min(longitude.decimals) < 2
        || latitude.decimals.abs_diff(longitude.decimals) > 1
        || !(0.125..8.0).contains(&ratio)
    {
        return false;
    }
    let distance = latitude.mean.hypot(longitude.mean);
    let region = longitude.reach > 20.0
        && both.iter().all(|it| it.span() < 60.0 && distance > 6.0 * it.deviation);
    let globe = latitude.span() > 45.0 && longitude.least < -90.0 && longitude.most > 90.0;
    region || globe
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What two columns of numbers between these limits are taken for.
    fn found(a: (f64, f64), b: (f64, f64), digits: usize) -> Option<[String; 2]> {
        let mut text = "a,b\n".to_owned();
        for row in 0..200_usize {
            let share = |salt: usize| ((row * 7919 + salt) % 1009) as f64 / 1009.0;
            let between = |limits: (f64, f64), salt| limits.0 + (limits.1 - limits.0) * share(salt);
            let (a, b) = (between(a, 1), between(b, 500));
            text = format!("{text}{a:.digits$},{b:.digits$}\n");
        }
        let table = Table::read_from(text.as_bytes(), "a.csv").unwrap().unwrap();
        places(&table, &["a".to_owned(), "b".to_owned()])
    }

    #[test]
    fn regions_and_the_globe_are_places() {
        let names = |names: [&str; 2]| Some(names.map(str::to_owned));
        assert_eq!(found((-122.6, -121.9), (37.2, 37.9), 4), names(["b", "a"]));
        assert_eq!(found((51.2, 51.7), (-0.5, 0.3), 5), names(["b", "a"]));
        assert_eq!(found((-60.0, 70.0), (-179.0, 179.0), 3), names(["a", "b"]));
    }

    #[test]
    fn other_numbers_are_not() {
        assert_eq!(found((-2.0, 2.0), (-2.0, 2.0), 4), None, "standardised");
        assert_eq!(found((10.0, 30.0), (30.0, 90.0), 1), None, "weather");
        assert_eq!(found((2.9, 3.9), (8.0, 14.0), 2), None, "wine");
        assert_eq!(found((0.3, 0.5), (25.0, 45.0), 5), None, "fruit");
        assert_eq!(found((7.0, 28.0), (10.0, 39.0), 2), None, "cells");
        assert_eq!(found((37.2, 37.9), (500.0, 501.0), 3), None, "out of range");
    }
}
