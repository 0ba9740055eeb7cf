//! Numbers as people read them.

use mle_star_search::models::{MetricDirection, Score};

/// A duration: `0.4 s`, `29 s`, `2 min 5 s`, `3 h 20 min`.
pub(crate) fn duration(seconds: f64) -> String {
    if !seconds.is_finite() || seconds < 0.0 {
        return "–".to_owned();
    }
    if seconds < 9.95 {
        return format!("{seconds:.1} s");
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    let whole = seconds.round() as u64;
    match whole {
        0..60 => format!("{whole} s"),
        60..3600 if whole.is_multiple_of(60) => format!("{} min", whole / 60),
        60..3600 => format!("{} min {} s", whole / 60, whole % 60),
        _ if (whole / 60).is_multiple_of(60) => format!("{} h", whole / 3600),
        _ => format!("{} h {} min", whole / 3600, (whole / 60) % 60),
    }
}

/// An amount of money: `$0.03`, `$12.40`.
pub(crate) fn dollars(amount: f64) -> String {
    format!("${amount:.2}")
}

/// A score as people read it: six significant digits at most, and never like a count.
pub fn score(score: Score) -> String {
    let text = number(score.get());
    if text.contains(['.', 'e']) { text } else { format!("{text}.0") }
}

/// A number with six significant digits at most, without zeros at its end.
pub(crate) fn number(value: f64) -> String {
    let size = value.abs();
    if size != 0.0 && !(1e-4..1e9).contains(&size) {
        return format!("{value:.4e}");
    }
    #[expect(clippy::cast_possible_truncation, reason = "between -4 and 9")]
    let before = if size == 0.0 { 1 } else { size.log10().floor() as i32 + 1 };
    let decimals = usize::try_from(6 - before).unwrap_or(0);
    let text = format!("{value:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// A number with its sign.
pub(crate) fn signed(value: f64) -> String {
    let text = number(value);
    if value > 0.0 { format!("+{text}") } else { text.replacen('-', "−", 1) }
}

/// How much better `new` is than `old`, in percent of `old`; negative if it is worse.
pub(crate) fn improvement(old: Score, new: Score, direction: MetricDirection) -> Option<f64> {
    let gained = match direction {
        MetricDirection::Maximize => new.get() - old.get(),
        MetricDirection::Minimize => old.get() - new.get(),
    };
    (old.get() != 0.0).then(|| 100.0 * gained / old.get().abs()).filter(|it| it.is_finite())
}

/// A change in percent.
pub(crate) fn percent(value: f64) -> String {
    let sign = if value > 0.0 {
        "+"
    } else if value < 0.0 {
        "−"
    } else {
        ""
    };
    let decimals = if value.abs() < 9.95 { 1 } else { 0 };
    format!("{sign}{:.decimals$} %", value.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_as_many_digits_as_mean_something() {
        let shown = [0.092_874_321_234, 62.53, 0.5, 123_456_789.0, 0.0, -1.5, 1e-7, 3e12];
        let shown: Vec<String> = shown.into_iter().map(number).collect();
        assert_eq!(
            shown,
            ["0.0928743", "62.53", "0.5", "123456789", "0", "-1.5", "1.0000e-7", "3.0000e12"]
        );
        let scores = [0.092_874_321_234, 1.0, 62.0].map(|it| score(Score::new(it).unwrap()));
        assert_eq!(scores, ["0.0928743", "1.0", "62.0"]);
        assert_eq!([signed(1.5), signed(-0.25), signed(0.0)], ["+1.5", "−0.25", "0"]);
        assert_eq!([percent(51.59), percent(-0.44), percent(0.0)], ["+52 %", "−0.4 %", "0.0 %"]);
    }

    #[test]
    fn durations_are_told_in_two_units_at_most() {
        let shown: Vec<String> = [0.44, 29.4, 60.0, 125.0, 3600.0, 12_000.0, f64::NAN]
            .into_iter()
            .map(duration)
            .collect();
        assert_eq!(shown, ["0.4 s", "29 s", "1 min", "2 min 5 s", "1 h", "3 h 20 min", "–"]);
    }
}
