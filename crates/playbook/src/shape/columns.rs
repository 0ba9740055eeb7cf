//! What a column is good for, by its values.

use std::collections::HashSet;

use super::table::{Column, number};

/// How a column can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    Numeric,
    Categorical,
    /// Words.
    Text,
    Date,
    /// Strings with a structure, such as `B/12/P` and `0001_01`.
    Code,
    /// No value at all, always the same one, or one that only names the row.
    Nothing,
}

/// What stands between the parts of a code.
const SEPARATORS: [char; 6] = ['/', '_', '-', ':', '|', '.'];

/// Looks at the values of a training column.
pub(crate) fn usage(column: &Column) -> Use {
    let distinct = column.distinct();
    let rows = column.values.len();
    let present = column.present().count();
    let complete = present == rows;
    if distinct.is_empty() || (distinct.len() == 1 && complete) {
        return Use::Nothing;
    }
    if is_mostly_number(column) {
        return if names_rows(column) { Use::Nothing } else { Use::Numeric };
    }
    let share = |test: &dyn Fn(&str) -> bool| {
        column.present().filter(|value| test(value)).count() as f64 / present as f64
    };
    if share(&is_date) > 0.95 {
        return Use::Date;
    }
    let many = distinct.len() > 30 && distinct.len() * 20 > present;
    let words = column.present().map(|value| value.split_whitespace().count()).sum::<usize>();
    let words = words as f64 / present as f64;
    let length = column.present().map(|value| value.chars().count()).sum::<usize>();
    let length = length as f64 / present as f64;
    let digits = share(&|value| value.chars().any(|it| it.is_ascii_digit()));
    if many && digits > 0.6 && words < 3.0 && length <= 24.0 {
        return if is_code(column) { Use::Code } else { hashes_or_categories(column) };
    }
    if many && (words >= 3.0 || length >= 40.0) {
        return Use::Text;
    }
    if many && words >= 1.5 && distinct.len() * 2 > present {
        return Use::Text;
    }
    hashes_or_categories(column)
}

/// Whether a column is of numbers, with a few words or marks such as `?` where there are none.
pub(crate) fn is_mostly_number(column: &Column) -> bool {
    let present = column.present().count();
    let words: Vec<&str> = column.present().filter(|value| number(value).is_none()).collect();
    let different: HashSet<&&str> = words.iter().collect();
    let numbers = present - words.len();
    let marks = words.iter().all(|value| !value.contains(char::is_alphanumeric));
    (numbers * 2 >= present && marks && numbers > 0)
        || (numbers * 20 >= present * 19 && different.len() <= 3 && numbers > 0)
}

/// Strings that all differ say nothing unless they have parts.
fn hashes_or_categories(column: &Column) -> Use {
    let present = column.present().count();
    if column.distinct().len() == present && present > 20 { Use::Nothing } else { Use::Categorical }
}

/// Whether a column of whole numbers only counts the rows.
fn names_rows(column: &Column) -> bool {
    let whole = |value: &str| number(value).is_some_and(|it| it.fract() == 0.0);
    if column.values.len() <= 20 || !column.is_unique() || !column.present().all(whole) {
        return false;
    }
    let mut numbers: Vec<f64> = column.present().filter_map(number).collect();
    let ordered = numbers.is_sorted();
    numbers.sort_by(f64::total_cmp);
    let (Some(first), Some(last)) = (numbers.first(), numbers.last()) else { return false };
    let dense = (last - first) < numbers.len() as f64 * 1.5;
    dense && (ordered || is_name_of_identifier(&column.name))
}

/// Whether values fall into parts: some part must repeat, or the strings only name the rows.
pub(crate) fn is_code(column: &Column) -> bool {
    let present: Vec<&str> = column.present().collect();
    let parted: Vec<Vec<String>> = present.iter().map(|value| parts(value)).collect();
    let several = parted.iter().filter(|parts| parts.len() > 1).count();
    if several * 10 < present.len() * 2 {
        return false;
    }
    (0..3).any(|position| {
        let at: Vec<&String> = parted.iter().filter_map(|parts| parts.get(position)).collect();
        let different: HashSet<&&String> = at.iter().collect();
        at.len() * 5 > present.len() && different.len() * 10 < at.len() * 9
    })
}

/// The parts of a code: at separators, at blanks, and where letters meet digits.
pub(crate) fn parts(value: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut last: Option<bool> = None;
    for character in value.chars() {
        if character.is_whitespace() || SEPARATORS.contains(&character) {
            last = None;
            continue;
        }
        let digit = character.is_ascii_digit();
        match parts.last_mut() {
            Some(part) if last == Some(digit) => part.push(character),
            Some(_) | None => parts.push(character.to_string()),
        }
        last = Some(digit);
    }
    parts
}

/// Whether a name says that the column names rows: `id`, `Id`, `user_id`, `PassengerId`.
pub(crate) fn is_name_of_identifier(name: &str) -> bool {
    let lower = name.to_lowercase();
    let last = lower.rsplit(|it: char| !it.is_alphanumeric()).next().unwrap_or_default();
    matches!(last, "id" | "key" | "uuid" | "index" | "rowid")
        || name.ends_with("Id")
        || name.ends_with("ID")
        || name.starts_with("Unnamed: 0")
        || lower.starts_with("id_")
}

/// Whether a text is a date, perhaps with a time: year first, or day or month first.
pub(crate) fn is_date(text: &str) -> bool {
    let text = text.trim();
    let date = text.split(['T', ' ']).next().unwrap_or_default();
    let fields: Vec<&str> = date.split(['-', '/', '.']).collect();
    let [first, second, third] = fields.as_slice() else { return false };
    let whole = |text: &str, digits: std::ops::RangeInclusive<usize>| {
        (digits.contains(&text.len()) && text.bytes().all(|it| it.is_ascii_digit()))
            .then(|| text.parse::<u32>().ok())
            .flatten()
    };
    let small = |text: &str| whole(text, 1..=2);
    let year = |text: &str| whole(text, 4..=4).is_some_and(|it| (1000..3000).contains(&it));
    let in_year = |a: Option<u32>, b: Option<u32>| {
        matches!((a, b), (Some(a), Some(b)) if (1..=31).contains(&a) && (1..=31).contains(&b)
            && a.min(b) <= 12)
    };
    (year(first) && in_year(small(second), small(third)))
        || (year(third) && in_year(small(first), small(second)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, values: impl IntoIterator<Item = String>) -> Column {
        let values = values.into_iter().map(|it| Some(it).filter(|it| !it.is_empty())).collect();
        Column { name: name.to_owned(), values, decimal: None, nones: Vec::new() }
    }

    fn used(name: &str, value: impl Fn(usize) -> String) -> Use {
        usage(&column(name, (0..200).map(value)))
    }

    #[test]
    fn columns_are_told_apart_by_their_values() {
        assert_eq!(used("a", |row| format!("{}.5", row % 17)), Use::Numeric);
        assert_eq!(used("a", |row| ["red", "blue"][row % 2].to_owned()), Use::Categorical);
        assert_eq!(used("a", |row| format!("{}/{row}/P", ["A", "B"][row % 2])), Use::Code);
        assert_eq!(used("a", |row| format!("{:04}_{:02}", row / 3, row % 3)), Use::Code);
        assert_eq!(used("a", |row| format!("20{:02}-0{}-11", row % 25, 1 + row % 9)), Use::Date);
        assert_eq!(used("a", |row| format!("a long story of {row} words")), Use::Text);
        let letters = |row: usize| row.to_string().bytes().map(|it| char::from(it + 49)).collect();
        let name = |row: usize| -> String { letters(row) };
        assert_eq!(used("a", |row| format!("Ada{} Byron", name(row))), Use::Text);
    }

    #[test]
    fn what_says_nothing_is_not_used() {
        assert_eq!(used("a", |_| String::new()), Use::Nothing);
        assert_eq!(used("a", |_| "7".to_owned()), Use::Nothing);
        assert_eq!(used("row", |row| row.to_string()), Use::Nothing);
        assert_eq!(used("some_id", |row| ((row * 7) % 200).to_string()), Use::Nothing);
        let hash = |row: usize| format!("{:x}", row.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        assert_eq!(used("a", |row| hash(row + 1).replace(char::is_numeric, "q")), Use::Nothing);
    }

    #[test]
    fn marks_and_rare_words_among_numbers_are_gaps() {
        let sometimes = |every: usize, word: &'static str| {
            move |row: usize| {
                if row % every == 1 { word.to_owned() } else { format!("{row}.5") }
            }
        };
        assert_eq!(used("a", sometimes(3, "?")), Use::Numeric);
        assert_eq!(used("a", sometimes(40, "unknown")), Use::Numeric);
        assert_eq!(used("a", sometimes(3, "unknown")), Use::Code);
    }

    #[test]
    fn a_constant_with_gaps_says_where_the_gaps_are() {
        let gaps =
            |row: usize| if row.is_multiple_of(2) { "yes".to_owned() } else { String::new() };
        assert_eq!(used("a", gaps), Use::Categorical);
    }

    #[test]
    fn names_of_identifiers() {
        for name in ["id", "Id", "PassengerId", "user_id", "Unnamed: 0"] {
            assert!(is_name_of_identifier(name), "{name}");
        }
        for name in ["humid", "paid", "width", "Grid"] {
            assert!(!is_name_of_identifier(name), "{name}");
        }
    }
}
