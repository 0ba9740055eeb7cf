//! A run in one document.

use mle_star_search::event::{Event, Output, Phase, Record};
use mle_star_view::report::{Extras, html, markdown};
use mle_star_view::{Overview, State};

use crate::fixture::{rent, until, with_events};

fn extras() -> Extras {
    Extras {
        run: "runs/rent".to_owned(),
        state: "finished".to_owned(),
        script: Some("print('done')\n".to_owned()),
    }
}

fn page(records: &[Record]) -> String {
    html(&Overview::of(records), &extras()).unwrap()
}

/// The page without its style sheet, which changes for other reasons.
fn body(page: &str) -> &str {
    page.split_once("<body>").unwrap().1
}

/// REQ-OR-037, REQ-OR-038, REQ-OR-039
#[test]
fn the_page_of_a_finished_run() {
    insta::assert_snapshot!(body(&page(&rent())));
}

#[test]
fn the_text_of_a_finished_run() {
    insta::assert_snapshot!(markdown(&Overview::of(&rent()), &extras()).unwrap());
}

#[test]
fn there_is_a_report_at_every_moment_of_a_run() {
    let records = rent();
    let mut overview = Overview::default();
    html(&overview, &Extras::default()).unwrap();
    for (number, record) in records.iter().enumerate() {
        overview.apply(record);
        if number % 40 == 0 {
            assert!(html(&overview, &extras()).unwrap().contains("</html>"));
            assert!(markdown(&overview, &extras()).unwrap().contains("# rent"));
        }
    }
    assert_eq!(overview.state(), State::Finished);
}

#[test]
fn a_run_that_failed_says_so_first() {
    let mut records =
        until(|record| matches!(record, Record::Happened { event: Event::Retrieved { .. }, .. }));
    let Some(Record::Happened { at, key, .. }) = records.last() else { panic!("an event") };
    let reason = "all 4 candidates produced execution errors".to_owned();
    let event = Event::PhaseFailed { phase: Phase::Phase1, reason };
    records.push(Record::Happened { at: *at, key: key.clone(), index: 9, event });
    let page = page(&records);
    assert!(
        page.contains(
            "The run ended without a solution: all 4 candidates produced execution errors."
        ),
        "{}",
        body(&page)
    );
}

/// What agents and scripts may write to take over a page, a terminal or a reader of Markdown.
const HOSTILE: &str = "</style></title></pre>--><script>alert(1)</script><img src=x onerror=alert(1)>\
     \u{1b}[2J\u{1b}]0;owned\u{7}\u{202e}gnp\u{0}{{ 7 * 7 }}{% raw %}[x](javascript:alert(1))`|\"'";

/// A run in which everything that is not ours is hostile.
fn hostile(text: &str) -> Vec<Record> {
    let mut records = with_events(rent(), |event| match event {
        Event::Refined { plan, .. } | Event::Ensembled { plan, .. } => *plan = text.to_owned(),
        Event::Retrieved { models } => models.iter_mut().for_each(|it| *it = text.to_owned()),
        Event::InnerLoopStarted { begins, plan, .. } => {
            *begins = text.to_owned();
            *plan = text.to_owned();
        }
        Event::Evaluated { error, .. } => *error = Some(text.to_owned()),
        Event::OuterStepEnded { .. } => *event = Event::Warned { message: text.to_owned() },
        Event::Summarized { summary } => summary.lineage = vec![text.to_owned()],
        _ => {}
    });
    for record in &mut records {
        match record {
            Record::Opened { header, .. } => {
                header.task.competition_id = text.to_owned();
                header.task.evaluation_metric = text.to_owned();
                header.task.description = text.to_owned();
                header.agents = text.to_owned();
                header.version = text.to_owned();
                header.config.model = text.to_owned();
                header.machine.python_version = text.to_owned();
                header.machine.packages.iter_mut().for_each(|it| it.name = text.to_owned());
                header.machine.gpus.absent_because = Some(text.to_owned());
                if let Some(containment) = &mut header.containment {
                    containment.refused = vec![text.to_owned()];
                }
            }
            Record::Finished { output: Output::Asked { reply, .. }, .. } => {
                reply.text = text.to_owned();
            }
            Record::Finished { output: Output::Ran { outcome, script, .. }, .. } => {
                outcome.stdout.text = format!("Baseline: 1\nWithout {text}: 2\n");
                *script = text.to_owned();
            }
            _ => {}
        }
    }
    records
}

#[test]
fn nothing_that_an_agent_or_a_script_wrote_is_markup() {
    let overview = Overview::of(&hostile(HOSTILE));
    let extras = Extras {
        run: HOSTILE.to_owned(),
        state: HOSTILE.to_owned(),
        script: Some(HOSTILE.to_owned()),
    };
    let page = html(&overview, &extras).unwrap();
    assert!(!page.contains("<script") && !page.contains("<img"));
    assert!(page.contains("{{ 7 * 7 }}"), "a template is text like any other");
    // Each of our own tags is closed once, and nobody else closed one.
    for tag in ["</style>", "</html>", "</body>", "</main>"] {
        assert_eq!(page.matches(tag).count(), 1, "{tag}");
    }
    for tag in ["title", "pre"] {
        let opened = page.matches(&format!("<{tag}")).count();
        assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "{tag}");
    }
    let is_obeyed = |it: char| {
        (it.is_control() && !['\n', '\t'].contains(&it)) || ('\u{202a}'..='\u{202e}').contains(&it)
    };
    assert!(!page.contains(is_obeyed));
    let rest = page.replace("&lt;", "").replace("&#x27;", "");
    assert!(!rest.contains("onerror=alert(1)>"), "no attribute is opened");

    let text = markdown(&overview, &extras).unwrap();
    assert!(!text.contains(is_obeyed));
    let outside_code: String = text.split("```").step_by(2).collect::<Vec<_>>().join("");
    assert!(!outside_code.contains("<script") && !outside_code.contains("<img"));
    assert!(!outside_code.contains("[x](javascript"), "brackets are escaped");
}

#[test]
fn a_megabyte_of_plan_makes_no_megabyte_of_report() {
    let page = page(&hostile(&"<&\u{1b}".repeat(350_000)));
    assert!(page.len() < 4_000_000, "{} bytes", page.len());
}

#[test]
fn the_page_asks_for_nothing_from_elsewhere() {
    let page = page(&rent());
    for elsewhere in ["http://", "https://", "url(", "@import", "<script", "<link", "<img", "src="]
    {
        assert!(!page.contains(elsewhere), "{elsewhere}");
    }
    assert!(page.contains("default-src 'none'"));
}
