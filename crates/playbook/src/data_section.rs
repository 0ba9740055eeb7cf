//! The one section with column names in it, written for this data.

mod joins;

use crate::script::{Kind as SectionKind, Section};
use crate::shape::{Decimal, Encoding, Group, IdSource, Join, Kind, Labels, Margin, Shape, Source};

pub(crate) use joins::with_joins;

/// The comment above the lines that make the training data smaller.
pub(crate) const SUBSAMPLING: &str = "# Subsampling: ";

/// Writes the data section. At most `limit` training rows are kept.
pub(crate) fn data_section(shape: &Shape, limit: u64) -> Section {
    let mut lines = Vec::new();
    let mut textual: Vec<&String> = Vec::new();
    for list in [&shape.categorical, &shape.text, &shape.dates, &shape.codes] {
        textual.extend(list);
    }
    let written = shape.written.iter().map(|it| &it.column);
    let renamed = match &shape.id_source {
        IdSource::Column(name) => Some(name),
        IdSource::Test | IdSource::Sample => None,
    };
    let id = shape.id.iter().chain(renamed).filter(|_| shape.id_is_text);
    for name in id.chain(written).chain(&shape.worded) {
        if !textual.contains(&name) {
            textual.push(name);
        }
    }
    let columns: Vec<String> =
        textual.iter().map(|name| format!("{}: str", quoted(name))).collect();
    if !columns.is_empty() {
        lines.push(format!("AS_TEXT = {{{}}}", columns.join(", ")));
    }
    let types = if columns.is_empty() { "" } else { ", dtype=AS_TEXT" };
    lines.push(format!("train = {}", reading(&shape.train, types)));
    if let Some(Labels { source, key, columns }) = &shape.labels {
        let taken: Vec<String> = std::iter::once(key).chain(columns).cloned().collect();
        lines.push(format!("labels = {}[{}]", reading(source, types), literals(&taken)));
        lines.push(format!("train = train.merge(labels, on={}, how=\"left\")", quoted(key)));
    }
    lines.push(format!("test = {}", reading(&shape.test, types)));
    let id_type = shape.id.as_ref().filter(|_| shape.id_is_text);
    let id_type = id_type.map_or(String::new(), |id| format!(", dtype={{{}: str}}", quoted(id)));
    lines.push(match &shape.sample {
        Some(sample) => format!("SAMPLE = {}", reading(sample, &id_type)),
        None => "SAMPLE = None".to_owned(),
    });
    match (&shape.id, &shape.id_source) {
        (Some(id), IdSource::Column(name)) => {
            lines.push(format!("test[{}] = test[{}]", quoted(id), quoted(name)));
        }
        (Some(id), IdSource::Sample) => {
            lines.push(format!("test[{0}] = SAMPLE[{0}].to_numpy()", quoted(id)));
        }
        (_, IdSource::Test) | (None, _) => {}
    }
    lines.extend(plain_numbers(shape));
    lines.push(String::new());
    lines.push(format!("ID = {}", shape.id.as_deref().map_or("None".to_owned(), quoted)));
    lines.push(format!("TARGETS = {}", names(&shape.targets)));
    lines.push(format!("KIND = \"{}\"", shape.kind));
    lines.push(format!("METRIC = \"{}\"", shape.metric));
    for (list, columns) in [
        ("NUMERIC", &shape.numeric),
        ("CATEGORICAL", &shape.categorical),
        ("TEXT", &shape.text),
        ("DATES", &shape.dates),
        ("CODES", &shape.codes),
    ] {
        lines.push(format!("{list} = {}", names(columns)));
    }
    if !shape.places.is_empty() {
        lines.push(format!("PLACES = {}", names(&shape.places)));
    }
    lines.push(format!("TIME = {}", shape.time.as_deref().map_or("None".to_owned(), quoted)));
    lines.push(String::new());
    if !shape.numeric.is_empty() {
        // A word far down in a column of numbers makes all of it words.
        for table in ["train", "test"] {
            lines.push(format!(
                "{table}[NUMERIC] = {table}[NUMERIC].apply(pd.to_numeric, errors=\"coerce\")"
            ));
        }
    }
    if shape.kind == Kind::Regression {
        lines.push(
            "train[TARGETS] = train[TARGETS].apply(pd.to_numeric, errors=\"coerce\")".to_owned(),
        );
    }
    if shape.none_is_a_class {
        lines.push("train[TARGETS] = train[TARGETS].fillna(\"None\")".to_owned());
    }
    lines.push("train = train.dropna(subset=TARGETS).reset_index(drop=True)".to_owned());
    if shape.target_was_whole {
        lines.push("train[TARGETS] = train[TARGETS].astype(int)".to_owned());
    }
    if shape.rows > limit {
        lines.push(format!("{SUBSAMPLING}{limit} rows drawn at random keep every script fast."));
        lines.push(format!("if len(train) > {limit}:"));
        lines.push(format!(
            "    train = train.sample({limit}, random_state=SEED).sort_index().reset_index(drop=True)"
        ));
    }
    lines.extend(target(shape));
    lines.push(match &shape.group {
        None => "groups = None".to_owned(),
        Some(Group::Column(name)) => {
            format!("groups = train[{}].astype(str).to_numpy()", quoted(name))
        }
        Some(Group::FirstPart(name)) => format!(
            "groups = train[{}].astype(str).str.extract(r\"^[^A-Za-z0-9]*([0-9]+|[A-Za-z]+)\")[0]\
             .fillna(\"\").to_numpy()",
            quoted(name)
        ),
    });
    let mut section = Section::new(SectionKind::Data, None, &lines.join("\n"));
    if shape.columns().next().is_none() {
        // Without further tables there is nothing to begin with.
        let joins: Vec<&Join> = shape.joins.iter().collect();
        section.text = with_joins(&section.text, &joins).unwrap_or(section.text);
    }
    section
}

/// Lines that rewrite `1.234,5` and the like as numbers.
fn plain_numbers(shape: &Shape) -> Vec<String> {
    let written = shape.written.iter().map(|it| {
        let (table, column) = (it.table.word(), quoted(&it.column));
        let plain = match it.decimal {
            Decimal::Point => ".str.replace(r\"[^0-9eE.+-]\", \"\", regex=True)",
            Decimal::Comma => {
                ".str.replace(r\"[^0-9,+-]\", \"\", regex=True).str.replace(\",\", \".\")"
            }
        };
        format!("{table}[{column}] = pd.to_numeric({table}[{column}]{plain}, errors=\"coerce\")")
    });
    let written: Vec<String> = written.collect();
    let comment = (!written.is_empty()).then(|| {
        "# Thousands marks, decimal commas and currencies go: numbers become plain.".to_owned()
    });
    comment.into_iter().chain(written).collect()
}

fn target(shape: &Shape) -> Vec<String> {
    let lines: &[&str] = match shape.kind {
        Kind::Binary | Kind::Multiclass => &[
            "CLASSES = np.array(sorted(train[TARGETS[0]].unique()))",
            "y = np.searchsorted(CLASSES, train[TARGETS[0]].to_numpy())",
        ],
        Kind::Multilabel => &["CLASSES = None", "y = train[TARGETS].to_numpy().astype(int)"],
        Kind::Regression => &["CLASSES = None", "y = train[TARGETS[0]].to_numpy(float)"],
    };
    lines.iter().map(|line| (*line).to_owned()).collect()
}

/// `pd.read_csv("./input/train.csv", sep=";")`
fn reading(source: &Source, types: &str) -> String {
    let mut call = format!("pd.read_csv({}", quoted(&format!("./input/{}", source.path)));
    if source.delimiter != ',' {
        call = format!("{call}, sep={}", quoted(&source.delimiter.to_string()));
    }
    match source.encoding {
        Encoding::Utf8 => {}
        Encoding::Utf8Marked => call += ", encoding=\"utf-8-sig\"",
        Encoding::Latin1 => call += ", encoding=\"latin-1\"",
        Encoding::Utf16 => call += ", encoding=\"utf-16\"",
    }
    match source.margin {
        Margin::None => format!("{call}{types})"),
        Margin::RowNames => format!("{call}{types}).reset_index(drop=True)"),
        Margin::Trailing => format!("{call}{types}, index_col=False)"),
    }
}

/// A list of strings in one line.
fn literals(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| quoted(name)).collect();
    format!("[{}]", quoted.join(", "))
}

/// A list of strings, over several lines where one would be long.
fn names(names: &[String]) -> String {
    let line = literals(names);
    if line.chars().count() <= 90 {
        return line;
    }
    let mut text = String::from("[\n");
    let mut current = String::from("   ");
    for name in names.iter().map(|name| quoted(name)) {
        if current.chars().count() + name.chars().count() > 96 {
            text += current.trim_end();
            text.push('\n');
            current = String::from("   ");
        }
        current = format!("{current} {name},");
    }
    format!("{text}{current}\n]")
}

/// A Python string literal.
pub(crate) fn quoted(text: &str) -> String {
    let mut literal = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => literal += "\\\"",
            '\\' => literal += "\\\\",
            '\n' => literal += "\\n",
            '\r' => literal += "\\r",
            '\t' => literal += "\\t",
            control if control.is_control() => {
                literal.extend([format!("\\u{:04x}", control as u32)])
            }
            other => literal.push(other),
        }
    }
    literal + "\""
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn long_lists_are_broken_into_lines() {
        let many: Vec<String> = (0..40).map(|it| format!("column {it}")).collect();
        let text = names(&many);
        assert!(text.lines().all(|line| line.len() <= 100));
        mle_star_python::check_syntax(&format!("x = {text}\n")).unwrap();
    }

    proptest! {
        #[test]
        fn any_name_is_one_literal(name: String) {
            let code = format!("x = {}\n", quoted(&name));
            prop_assert!(mle_star_python::check_syntax(&code).is_ok(), "{}", code);
            prop_assert_eq!(code.lines().count(), 1);
        }
    }
}
