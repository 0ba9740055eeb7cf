//! What stands below the last lines of a run while it goes on, in a terminal.
//!
//! From top to bottom: an empty line, the phases, a line for everything that goes on side by side,
//! and what has been found and spent. It is text and nothing else, made from the overview, the time
//! and the size of the window: whoever owns the terminal puts it there.

use jiff::Timestamp;
use mle_star_search::event::Phase;

use crate::columns::{Row, Style, Window, cut_front, width};
use crate::format::{dollars, duration, score};
use crate::overview::{Lane, LaneState, OpenStep, Overview, PhaseOutcome};
use crate::{Forecast, plain};

/// How many points of a trend are shown.
const TREND_COLUMNS: usize = 8;

/// The least of a step's name that is worth showing.
const LEAST_STEP: usize = 8;

/// The lines, without line breaks, none of them wider than the window, and fewer than it has rows.
pub fn live(overview: &Overview, now: Timestamp, window: Window) -> Vec<String> {
    let elapsed = overview.tally.elapsed(now);
    let sums = sums(overview, elapsed, window);
    let lanes = lanes(overview);
    // Half of the window is for the lines that stay.
    let room = (window.rows / 2).saturating_sub(2 + sums.len()).max(1);
    let table = Table::of(&lanes, overview);
    let rows = lanes.iter().take(room).flat_map(|lane| table.rows(lane, elapsed, window));
    let mut lines = vec![String::new(), phases(overview, window)];
    lines.extend(rows);
    if lanes.len() > room {
        let mut row = Row::of(window);
        row.push(Style::Faint, &format!("and {} more", lanes.len() - room));
        lines.push(row.finish());
    }
    lines.extend(sums);
    lines.truncate(window.rows.saturating_sub(1));
    lines
}

/// The lines while what a run needs is made ready.
pub fn preparing(seconds: f64, window: Window) -> Vec<String> {
    let mut row = Row::of(window);
    row.push(Style::Strong, "getting ready");
    row.push(Style::Plain, &format!(" · {}", whole_seconds(seconds)));
    vec![String::new(), row.finish()]
}

/// The phases, as far as they go on a line: what is done, what goes on, what is to come.
fn phases(overview: &Overview, window: Window) -> String {
    let order = [Phase::Phase1, Phase::Phase2, Phase::Phase3, Phase::Finalization];
    let mut pieces = Vec::new();
    for phase in order {
        let name = match phase {
            Phase::Phase1 => "phase 1",
            Phase::Phase2 => "phase 2",
            Phase::Phase3 => "phase 3",
            Phase::Finalization => "final",
        };
        let span = overview.phases().iter().find(|it| it.phase == phase);
        let best = span.and_then(|it| it.best);
        let best = best.map(|it| format!(" {}", score(it))).unwrap_or_default();
        pieces.push(match span.map(|it| it.outcome) {
            None => (Style::Faint, format!("· {name}")),
            Some(PhaseOutcome::Open) => (Style::Strong, format!("▸ {name}")),
            Some(PhaseOutcome::Ended) => (Style::Good, format!("✓ {name}{best}")),
            Some(PhaseOutcome::Skipped) => (Style::Faint, format!("– {name}")),
            Some(PhaseOutcome::Failed) => (Style::Bad, format!("✗ {name}")),
        });
    }
    let whole: usize = pieces.iter().map(|(_, text)| width(text) + 2).sum();
    let mut row = Row::of(window);
    if whole > row.left() + 2 {
        pieces.retain(|(style, _)| *style == Style::Strong);
    }
    for (number, (style, text)) in pieces.iter().enumerate() {
        row.push(Style::Plain, if number == 0 { "" } else { "  " });
        row.push(*style, text);
    }
    row.finish()
}

/// What goes on side by side: the paths while they are refined, else what has a step in flight. In
/// the moment between two steps it is what was at work last.
fn lanes(overview: &Overview) -> Vec<&Lane> {
    let is_open =
        |it: &&crate::PhaseSpan| it.phase == Phase::Phase2 && it.outcome == PhaseOutcome::Open;
    let is_refining = overview.phases().iter().any(|it| is_open(&it));
    let is_shown = |lane: &&Lane| {
        lane.state == LaneState::Working || (is_refining && lane.name.starts_with("path-"))
    };
    let shown: Vec<&Lane> = overview.lanes().iter().filter(is_shown).collect();
    if !shown.is_empty() {
        return shown;
    }
    let by_end = |one: &&Lane, other: &&Lane| one.ended_seconds.total_cmp(&other.ended_seconds);
    overview.lanes().iter().max_by(by_end).into_iter().collect()
}

/// How wide the parts of the lines of lanes are, so that they stand below each other.
struct Table<'a> {
    overview: &'a Overview,
    name: usize,
    score: usize,
    trend: usize,
}

impl<'a> Table<'a> {
    fn of(lanes: &[&Lane], overview: &'a Overview) -> Self {
        let widest =
            |of: fn(&Lane) -> String| lanes.iter().map(|lane| width(&of(lane))).max().unwrap_or(0);
        Self {
            overview,
            name: widest(|lane| plain(&lane.name)).min(14),
            score: widest(best),
            trend: widest(trend),
        }
    }

    /// A lane in a line: its name, its best score with its trend, its step, and for how long. Where
    /// that is too much for a line, the time goes below.
    fn rows(&self, lane: &Lane, elapsed: f64, window: Window) -> Vec<String> {
        let mut row = Row::of(window);
        let step = self.overview.open_steps().iter().rfind(|it| it.lane == lane.name);
        let (time, time_style) = time(lane, step, elapsed);
        let head = 2 + self.name;
        let is_narrow = head + 2 + self.score + 2 + width(&time) > row.left();
        let tail = if is_narrow { 0 } else { 2 + width(&time) };
        let mut left = row.left().saturating_sub(head + tail);
        row.push(Style::Plain, "  ");
        row.push_padded(Style::Plain, &plain(&lane.name), self.name);
        if self.score > 0 && left >= self.score + 2 {
            row.push(Style::Plain, "  ");
            row.push_padded(Style::Strong, &best(lane), self.score);
            left -= self.score + 2;
            if self.trend > 0 && left >= self.trend + 1 + LEAST_STEP {
                row.push(Style::Plain, " ");
                row.push_padded(Style::Good, &trend(lane), self.trend);
                left -= self.trend + 1;
            }
        }
        let name = step.map(|it| plain(&it.key)).unwrap_or_default();
        let name = inside(&name, &lane.name);
        if !name.is_empty() && left >= LEAST_STEP + 2 {
            row.push(Style::Plain, "  ");
            row.push(Style::Faint, &cut_front(name, left - 2));
        }
        if !is_narrow {
            row.push(Style::Plain, "  ");
            row.push(time_style, &time);
            return vec![row.finish()];
        }
        let mut below = Row::of(window);
        below.push(Style::Plain, "  ");
        below.push(time_style, time.strip_prefix("script ").unwrap_or(&time));
        vec![row.finish(), below.finish()]
    }
}

fn best(lane: &Lane) -> String {
    lane.best.map(score).unwrap_or_default()
}

/// How the best score of a lane came to be; nothing for one that was never improved upon.
fn trend(lane: &Lane) -> String {
    let from = lane.trend.len().saturating_sub(TREND_COLUMNS);
    let scores: Vec<f64> = lane.trend.iter().skip(from).map(|it| it.score.get()).collect();
    if scores.len() < 2 { String::new() } else { sparkline(&scores) }
}

fn sparkline(values: &[f64]) -> String {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let bars = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let bar = |value: &f64| {
        // Halves, because the difference of two numbers may be more than a number can be.
        let height = (value / 2.0 - least / 2.0) / (most / 2.0 - least / 2.0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        let height = (height * 7.0).round() as usize;
        bars.get(height).copied().unwrap_or('█')
    };
    values.iter().map(bar).collect()
}

/// A step's name without its phase and its lane, which stand beside it.
fn inside<'a>(step: &'a str, lane: &str) -> &'a str {
    let rest = step.split_once('/').map_or(step, |(_, rest)| rest);
    let rest = rest.strip_prefix(lane).and_then(|rest| rest.strip_prefix('/')).unwrap_or(rest);
    // That a script runs is seen; which attempt it is matters once it had to be repaired.
    rest.strip_suffix("attempt-0/run").unwrap_or(rest).trim_end_matches('/')
}

/// For how long a lane has been at its step; a script is also told how long it may take.
fn time(lane: &Lane, step: Option<&OpenStep>, elapsed: f64) -> (String, Style) {
    let Some(step) = step else {
        return match lane.state {
            LaneState::Done => ("done".to_owned(), Style::Good),
            LaneState::CutShort => ("ended early".to_owned(), Style::Warning),
            LaneState::Failed => ("failed".to_owned(), Style::Bad),
            LaneState::Working | LaneState::Idle => ("waiting".to_owned(), Style::Faint),
        };
    };
    if step.waits() {
        return ("script waits its turn".to_owned(), Style::Faint);
    }
    let seconds = elapsed - step.runs_since_seconds.unwrap_or(step.began_seconds);
    let taken = whole_seconds(seconds);
    match step.limit_seconds {
        None => (taken, Style::Plain),
        Some(limit) => {
            let style = if seconds > 0.8 * limit { Style::Warning } else { Style::Plain };
            (format!("script {taken} / {}", whole_seconds(limit)), style)
        }
    }
}

/// What was found and spent, in as many lines as it takes.
fn sums(overview: &Overview, elapsed: f64, window: Window) -> Vec<String> {
    let mut pieces: Vec<(Style, String)> = Vec::new();
    if let (Some(best), Some(subject)) = (overview.tally.best, &overview.subject) {
        pieces.push((Style::Good, format!("best {} {}", score(best), plain(&subject.metric))));
    }
    let Some(budget) = overview.budget() else { return Vec::new() };
    let limit = whole_seconds(budget.time_limit_seconds);
    pieces.push((Style::Plain, format!("{} of {limit}", whole_seconds(elapsed))));
    match (overview.tally.cost_usd(), budget.max_budget_usd) {
        (_, Some(most)) => {
            let spent = dollars(budget.spent_usd);
            pieces.push((Style::Plain, format!("{spent} of {}", dollars(most))));
        }
        (Some(spent), None) if spent > 0.0 => pieces.push((Style::Plain, dollars(spent))),
        // The playbook costs nothing.
        (_, None) => {}
    }
    if let Some(guess) = Forecast::of(overview, elapsed) {
        let left = whole_seconds(guess.seconds_left);
        pieces.push((Style::Plain, format!("{:.0} % done", 100.0 * guess.done)));
        pieces.push((Style::Plain, format!("about {left} left")));
        if let Some(cost) = guess.cost_usd.filter(|it| *it > 0.0) {
            pieces.push((Style::Plain, format!("{} in all", dollars(cost))));
        }
    }
    if overview.warning_count > 0 {
        pieces.push((Style::Warning, format!("warnings: {}", overview.warning_count)));
    }
    flow(&pieces, window)
}

/// As many of the pieces on each line as fit.
fn flow(pieces: &[(Style, String)], window: Window) -> Vec<String> {
    let (mut lines, mut row) = (Vec::new(), Row::of(window));
    let mut is_empty = true;
    for (style, text) in pieces {
        if !is_empty && row.left() < width(text) + 3 {
            lines.push(std::mem::replace(&mut row, Row::of(window)).finish());
            is_empty = true;
        }
        row.push(Style::Faint, if is_empty { "" } else { " · " });
        row.push(*style, text);
        is_empty = false;
    }
    lines.push(row.finish());
    lines
}

/// A duration that does not change more often than once a second.
fn whole_seconds(seconds: f64) -> String {
    let seconds = seconds.max(0.0).floor();
    if seconds < 10.0 { format!("{seconds:.0} s") } else { duration(seconds) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sparkline_goes_from_the_lowest_to_the_highest_value() {
        assert_eq!(sparkline(&[0.0, 0.5, 1.0, 0.25]), "▁▅█▃");
        assert_eq!(sparkline(&[f64::MAX, f64::MIN]), "█▁");
        assert_eq!(sparkline(&[1.0, 1.0]), "▁▁");
    }

    #[test]
    fn a_step_is_named_without_what_stands_beside_it() {
        let named = [
            inside("phase2/path-0/outer-1/inner-2/coder", "path-0"),
            inside("phase2/path-0/outer-1/inner-2/attempt-0/run", "path-0"),
            inside("phase2/path-0/outer-1/inner-2/attempt-1/run", "path-0"),
            inside("phase1/retriever", "main"),
            inside("phase3/round-0", "ensemble"),
            inside("finalization", "final"),
            inside("phase1/candidate-0", "candidate-0"),
            inside("phase1/candidate-0/attempt-0/run", "candidate-0"),
            inside("phase1/merge-1/merger", "merge"),
        ];
        assert_eq!(
            named,
            [
                "outer-1/inner-2/coder",
                "outer-1/inner-2",
                "outer-1/inner-2/attempt-1/run",
                "retriever",
                "round-0",
                "finalization",
                "candidate-0",
                "",
                "merge-1/merger"
            ]
        );
    }
}
