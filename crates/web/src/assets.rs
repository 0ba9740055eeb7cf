//! The files of the page, as they are in `assets/`.

/// The page.
pub(crate) const INDEX: &str = include_str!("../assets/index.html");

/// What the page is made of: name, kind, content.
const FILES: [(&str, &str, &str); 12] = [
    ("style.css", CSS, include_str!("../assets/style.css")),
    ("icon.svg", "image/svg+xml", include_str!("../assets/icon.svg")),
    ("app.js", JS, include_str!("../assets/app.js")),
    ("dom.js", JS, include_str!("../assets/dom.js")),
    ("format.js", JS, include_str!("../assets/format.js")),
    ("live.js", JS, include_str!("../assets/live.js")),
    ("chart.js", JS, include_str!("../assets/chart.js")),
    ("summary.js", JS, include_str!("../assets/summary.js")),
    ("tree.js", JS, include_str!("../assets/tree.js")),
    ("panel.js", JS, include_str!("../assets/panel.js")),
    ("sections.js", JS, include_str!("../assets/sections.js")),
    ("list.js", JS, include_str!("../assets/list.js")),
];

const CSS: &str = "text/css; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";

/// The kind and the content of a file of the page.
pub(crate) fn file(name: &str) -> Option<(&'static str, &'static str)> {
    FILES.iter().find(|(known, ..)| *known == name).map(|(_, kind, content)| (*kind, *content))
}
