//! The scores of a run over time, as a drawing.
//!
//! Nothing that an agent wrote is in it: only numbers and names that this program made. It is drawn
//! twice, for wide and for narrow screens, because letters in a drawing shrink with it.

use std::fmt::{self, Write};

use mle_star_search::event::Phase;
use mle_star_search::models::{MetricDirection, best_of, is_improvement};

use crate::format::{duration, number};
use crate::overview::Place;
use crate::{Overview, Solution, SolutionKind, SolutionOutcome};

/// How many lanes have a colour of their own.
const COLOURS: usize = 6;

/// The size of a drawing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size {
    width: f64,
    height: f64,
    ticks: usize,
}

pub(super) const WIDE: Size = Size { width: 960.0, height: 340.0, ticks: 7 };
pub(super) const NARROW: Size = Size { width: 380.0, height: 300.0, ticks: 3 };

const LEFT: f64 = 62.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 34.0;

/// A scored solution, where it belongs.
struct Dot<'a> {
    seconds: f64,
    score: f64,
    solution: &'a Solution,
    class: String,
}

/// What a legend explains: the class of a colour, and what has it.
pub(super) fn legend(overview: &Overview) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for dot in dots(overview) {
        if !found.iter().any(|(class, _)| *class == dot.class) {
            let name = match dot.solution.kind {
                SolutionKind::Refined => group(dot.solution).replace('-', " "),
                SolutionKind::Ensemble => "ensembles".to_owned(),
                SolutionKind::Model
                | SolutionKind::Candidate
                | SolutionKind::Merged
                | SolutionKind::Checked
                | SolutionKind::EarlySubmission
                | SolutionKind::Final => "candidates and merges".to_owned(),
            };
            found.push((dot.class, name));
        }
    }
    // Paths begin in any order; in a legend they are sought by their numbers.
    found.sort_by_key(|(class, name)| (class == "ensemble", class != "first", name.clone()));
    found
}

/// The drawing; `None` if there is no score to draw.
pub(super) fn chart(overview: &Overview, size: Size) -> Option<String> {
    let dots = dots(overview);
    let last = dots.iter().map(|dot| dot.seconds).reduce(f64::max)?;
    let end = overview.elapsed().max(last).max(1e-3);
    let (low, high) = range(&dots, overview.direction())?;
    let x = |seconds: f64| LEFT + (size.width - LEFT - RIGHT) * (seconds / end).clamp(0.0, 1.0);
    let y = |score: f64| {
        let share = ((score - low) / (high - low)).clamp(0.0, 1.0);
        size.height - BOTTOM - share * (size.height - TOP - BOTTOM)
    };

    let mut svg = Svg::default();
    svg.add(format_args!(
        "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"Scores over time\">",
        size.width, size.height
    ));
    bands(&mut svg, overview, size, end, &x);
    let floor = size.height - BOTTOM;
    for tick in ticks(low, high, 5) {
        let at = y(tick);
        svg.add(format_args!(
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
             <text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            size.width - RIGHT,
            LEFT - 8.0,
            at + 4.0,
            number(tick)
        ));
    }
    for tick in time_ticks(end, size.ticks) {
        svg.add(format_args!(
            "<text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            x(tick),
            floor + 20.0,
            if tick == 0.0 { "0".to_owned() } else { duration(tick).replacen(".0 s", " s", 1) }
        ));
    }
    best_line(&mut svg, overview.direction(), &dots, end, &x, &y);
    for dot in &dots {
        let outcome = match dot.solution.outcome {
            SolutionOutcome::Rejected | SolutionOutcome::Failed => "hollow",
            SolutionOutcome::Retrieved
            | SolutionOutcome::Open
            | SolutionOutcome::Scored
            | SolutionOutcome::Accepted
            | SolutionOutcome::Submitted => "full",
        };
        svg.add(format_args!(
            "<circle class=\"dot {} {outcome}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"4\">\
             <title>{}: {}</title></circle>",
            dot.class,
            x(dot.seconds),
            y(dot.score),
            place(&dot.solution.id),
            number(dot.score)
        ));
    }
    svg.add(format_args!("</svg>"));
    Some(svg.0)
}

#[derive(Default)]
struct Svg(String);

impl Svg {
    fn add(&mut self, piece: fmt::Arguments<'_>) {
        self.0.write_fmt(piece).ok(); // a string takes everything
    }
}

/// A place in the run, which could be anything in a journal that somebody else wrote.
fn place(id: &str) -> String {
    let harmless = |it: &char| it.is_ascii_alphanumeric() || "/-_ ".contains(*it);
    id.chars().filter(harmless).take(80).collect()
}

fn group(solution: &Solution) -> &str {
    solution.id.split('/').nth(1).unwrap_or_default()
}

fn dots(overview: &Overview) -> Vec<Dot<'_>> {
    let scored = overview.solutions().iter().filter_map(|solution| {
        let (seconds, score) = (solution.ended_seconds?, solution.score?.get());
        let class = match solution.kind {
            SolutionKind::Refined => {
                let number = Place::of(&solution.id).number("path").unwrap_or(0);
                format!("path{}", number % COLOURS)
            }
            SolutionKind::Ensemble => "ensemble".to_owned(),
            SolutionKind::Model
            | SolutionKind::Candidate
            | SolutionKind::Merged
            | SolutionKind::Checked
            | SolutionKind::EarlySubmission
            | SolutionKind::Final => "first".to_owned(),
        };
        Some(Dot { seconds, score, solution, class })
    });
    let mut dots: Vec<Dot<'_>> = scored.collect();
    dots.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    dots
}

/// The range of scores to show. One script that is far off must not flatten all others: it is drawn
/// at the edge. What was the best of its time may be further off.
fn range(dots: &[Dot<'_>], direction: MetricDirection) -> Option<(f64, f64)> {
    let mut scores: Vec<f64> = dots.iter().map(|dot| dot.score).collect();
    scores.sort_by(f64::total_cmp);
    let at = |share: usize| scores.get((scores.len().saturating_sub(1)) * share / 4).copied();
    let (first, third) = (at(1)?, at(3)?);
    let spread = third - first;
    let mut best = None;
    let shown = dots.iter().filter_map(|dot| {
        let score = dot.solution.score?;
        let is_best = best.is_none_or(|best| is_improvement(score, best, direction));
        best = Some(best_of(best, score, direction));
        let reach = if is_best { 20.0 * spread } else { 3.0 * spread };
        let is_near = dot.score >= first - reach && dot.score <= third + reach;
        is_near.then_some(dot.score)
    });
    let (low, high) = shown.fold((first, third), |(low, high), it| (low.min(it), high.max(it)));
    let margin = match (high - low) * 0.06 {
        margin if margin > 0.0 => margin,
        _ => low.abs().max(1e-6) * 0.05,
    };
    Some((low - margin, high + margin)).filter(|(low, high)| (high - low).is_finite() && low < high)
}

/// The phases, as bands in the background.
fn bands(svg: &mut Svg, overview: &Overview, size: Size, end: f64, x: &impl Fn(f64) -> f64) {
    for (number, span) in overview.phases().iter().enumerate() {
        let (from, to) = (x(span.began_seconds), x(span.ended_seconds.unwrap_or(end)));
        let shade = if number % 2 == 0 { "even" } else { "odd" };
        svg.add(format_args!(
            "<rect class=\"band {shade}\" x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
            TOP - 22.0,
            (to - from).max(0.0),
            size.height - TOP - BOTTOM + 22.0
        ));
        let name = match span.phase {
            Phase::Phase1 => "Phase 1",
            Phase::Phase2 => "Phase 2",
            Phase::Phase3 => "Phase 3",
            Phase::Finalization => "Final",
        };
        // A name that is wider than its band would run into the next.
        if to - from > 64.0 {
            svg.add(format_args!(
                "<text class=\"phase\" x=\"{:.1}\" y=\"{:.1}\">{name}</text>",
                from + 7.0,
                TOP - 7.0
            ));
        }
    }
}

/// The best score so far, as a line of steps.
fn best_line(
    svg: &mut Svg,
    direction: MetricDirection,
    dots: &[Dot<'_>],
    end: f64,
    x: &impl Fn(f64) -> f64,
    y: &impl Fn(f64) -> f64,
) {
    let mut best = None;
    let mut path = String::new();
    for dot in dots {
        let Some(score) = dot.solution.score else { continue };
        let is_better = best.is_none_or(|best| is_improvement(score, best, direction));
        best = Some(best_of(best, score, direction));
        if is_better {
            let (x, y) = (x(dot.seconds), y(dot.score));
            let step = if path.is_empty() {
                write!(path, "M{x:.1} {y:.1}")
            } else {
                write!(path, "H{x:.1}V{y:.1}")
            };
            step.ok(); // a string takes everything
        }
    }
    svg.add(format_args!("<path class=\"best\" d=\"{path}H{:.1}\"/>", x(end)));
}

/// Round numbers within a range.
fn ticks(low: f64, high: f64, wanted: usize) -> Vec<f64> {
    #[expect(clippy::cast_precision_loss, reason = "a handful")]
    let rough = (high - low) / wanted as f64;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].iter().map(|it| it * power).find(|it| *it >= rough);
    let step = step.unwrap_or(rough);
    let mut tick = (low / step).ceil() * step;
    let mut ticks = Vec::new();
    while tick <= high && ticks.len() < 20 {
        ticks.push(if tick.abs() < step / 1e6 { 0.0 } else { tick });
        tick += step;
    }
    ticks
}

/// Round times from the beginning to the end.
fn time_ticks(end: f64, wanted: usize) -> Vec<f64> {
    const STEPS: [f64; 20] = [
        0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 1800.0,
        3600.0, 7200.0, 14_400.0, 21_600.0, 43_200.0,
    ];
    #[expect(clippy::cast_precision_loss, reason = "a handful")]
    let rough = end / wanted as f64;
    let step =
        STEPS.into_iter().find(|it| *it >= rough).unwrap_or(86_400.0 * (rough / 86_400.0).ceil());
    let mut ticks = Vec::new();
    let mut tick = 0.0;
    // The last one would stick out.
    while tick <= end * 0.97 && ticks.len() < 20 {
        ticks.push(tick);
        tick += step;
    }
    ticks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_within_the_range() {
        assert_eq!(ticks(60.0, 200.0, 5), [100.0, 150.0, 200.0]);
        assert_eq!(ticks(-0.1, 0.4, 5), [-0.1, 0.0, 0.1, 0.2, 0.30000000000000004, 0.4]);
        assert_eq!(time_ticks(29.0, 7), [0.0, 5.0, 10.0, 15.0, 20.0, 25.0]);
        assert_eq!(
            time_ticks(86_400.0, 7),
            [0.0, 14_400.0, 28_800.0, 43_200.0, 57_600.0, 72_000.0]
        );
    }
}
