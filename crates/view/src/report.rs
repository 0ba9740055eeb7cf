//! A run in one document, to be read, printed and passed on.
//!
//! [`html`] is a single file without scripts or anything from elsewhere; [`markdown`] says the same
//! in plain text. Both can be made at any moment of a run: what is not known yet is left out. The
//! templates lie beside this file and only place what `content` has prepared.
//!
//! What agents and scripts wrote is hostile. It is escaped wherever a template places it, stripped
//! of control characters, and never longer than the overview keeps it.

mod chart;
mod content;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, Value};

use crate::Overview;
use content::Content;

/// What a report shows besides what is on record.
#[derive(Debug, Clone, Default)]
pub struct Extras {
    /// The run directory, as commands name it.
    pub run: String,
    /// How the run is doing, in a word.
    pub state: String,
    /// The script of the submission.
    pub script: Option<String>,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
#[error("the report cannot be made")]
pub struct ReportError(#[from] minijinja::Error);

/// The report as one page.
pub fn html(overview: &Overview, extras: &Extras) -> Result<String, ReportError> {
    render("report.html", overview, extras)
}

/// The report as Markdown.
pub fn markdown(overview: &Overview, extras: &Extras) -> Result<String, ReportError> {
    render("report.md", overview, extras)
}

fn render(name: &str, overview: &Overview, extras: &Extras) -> Result<String, ReportError> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(minijinja::UndefinedBehavior::Strict);
    let mut syntax = SyntaxConfig::builder();
    syntax.trim_blocks(true).lstrip_blocks(true).keep_trailing_newline(true);
    environment.set_syntax(syntax.build()?);
    environment.set_auto_escape_callback(|name| match name {
        "report.md" => AutoEscape::Custom(MARKDOWN.into()),
        _ => AutoEscape::Html,
    });
    environment.set_formatter(|out, state, value| {
        let is_markdown =
            matches!(state.auto_escape(), AutoEscape::Custom(name) if name == MARKDOWN);
        if value.is_safe() && is_markdown {
            return out.write_str(&value.to_string()).map_err(minijinja::Error::from);
        }
        if !is_markdown {
            return minijinja::escape_formatter(out, state, value);
        }
        out.write_str(&in_markdown(&value.to_string())).map_err(minijinja::Error::from)
    });
    environment.add_filter("code", |text: String| Value::from_safe_string(as_code(&text)));
    environment.add_template("report.html", include_str!("report/report.html"))?;
    environment.add_template("report.css", include_str!("report/report.css"))?;
    environment.add_template("report.md", include_str!("report/report.md"))?;
    Ok(environment.get_template(name)?.render(Serde(Content::of(overview, extras)))?)
}

/// How Markdown is named where escaping is chosen.
const MARKDOWN: &str = "markdown";

/// A text on one line, in which nothing is markup.
fn in_markdown(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for it in crate::plain(text).chars() {
        match it {
            // Some readers of Markdown let HTML through, where a backslash does not help.
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '!' | '~' => {
                escaped.push('\\');
                escaped.push(it);
            }
            it => escaped.push(it),
        }
    }
    escaped
}

/// A text as a block of code, whatever fences it has in it.
fn as_code(text: &str) -> String {
    let longest = text.split(|it| it != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}\n{}\n{fence}", text.trim_end_matches('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_in_markdown_is_never_markup() {
        assert_eq!(
            in_markdown("<b>*x*</b>\n| a | [l](javascript:1) `c`\u{1b}[2J"),
            r"&lt;b&gt;\*x\*&lt;/b&gt; \| a \| \[l\](javascript:1) \`c\` \[2J"
        );
        assert_eq!(as_code("a\n````\nb\n"), "`````\na\n````\nb\n`````");
    }
}
