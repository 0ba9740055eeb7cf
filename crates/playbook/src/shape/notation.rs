//! Numbers as people write them: `1,234.50`, `1.234,50`, `1 234`, `€12`, `7 %`.
//!
//! pandas reads such columns as words. Here they are recognised, by their values alone, and
//! rewritten as plain numbers; the scripts do the same with the whole column.

use super::table::{Column, Table};

/// What stands before the fraction of a number that is not written plainly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decimal {
    Point,
    Comma,
}

/// Rewrites the columns whose values are all numbers, but not all plain ones.
pub(super) fn make_plain(table: &mut Table) {
    let notations: Vec<Vec<Decimal>> = table.columns.iter().map(possible).collect();
    // `1,234` says nothing; other columns of the same file may. Where semicolons divide cells,
    // commas divide numbers.
    let told = notations.iter().any(|it| it.as_slice() == [Decimal::Comma]);
    let told_otherwise = notations.iter().any(|it| it.as_slice() == [Decimal::Point]);
    let usual = if told || (table.delimiter == ';' && !told_otherwise) {
        Decimal::Comma
    } else {
        Decimal::Point
    };
    for (column, possible) in table.columns.iter_mut().zip(notations) {
        let Some(decimal) =
            possible.iter().copied().find(|it| *it == usual).or(possible.first().copied())
        else {
            continue;
        };
        for value in column.values.iter_mut().flatten() {
            *value = plain(value, decimal);
        }
        column.decimal = Some(decimal);
    }
}

/// The notations that explain every value; none where the column needs no explanation.
fn possible(column: &Column) -> Vec<Decimal> {
    if column.present().next().is_none() || column.is_number() {
        return Vec::new();
    }
    let fits = |decimal: &Decimal| column.present().all(|value| is_number(value, *decimal));
    [Decimal::Point, Decimal::Comma].into_iter().filter(fits).collect()
}

fn is_number(value: &str, decimal: Decimal) -> bool {
    let signs = |it: char| matches!(it, '$' | '€' | '£' | '¥' | '₹' | '%') || it.is_whitespace();
    let bare = value.trim_matches(signs);
    let bare = bare.strip_prefix(['-', '+']).unwrap_or(bare).trim_start_matches(signs);
    let (mark, thousands) = match decimal {
        Decimal::Point => ('.', [',', ' ', '\u{a0}', '\u{202f}', '\'']),
        Decimal::Comma => (',', ['.', ' ', '\u{a0}', '\u{202f}', '\'']),
    };
    let digits = |text: &str| text.bytes().all(|it| it.is_ascii_digit());
    let (whole, fraction) = bare.split_once(mark).unwrap_or((bare, ""));
    if whole.is_empty() || !digits(fraction) {
        return false;
    }
    let groups: Vec<&str> = match thousands.iter().find(|it| whole.contains(**it)) {
        Some(mark) => whole.split(*mark).collect(),
        None => vec![whole],
    };
    match groups.as_slice() {
        [only] => digits(only),
        [first, others @ ..] => {
            // No thousands begin with a zero: `0,123` is a fraction.
            (1..=3).contains(&first.len())
                && digits(first)
                && !first.starts_with('0')
                && others.iter().all(|it| it.len() == 3 && digits(it))
        }
        [] => false,
    }
}

/// The same number as Rust and pandas write it.
fn plain(value: &str, decimal: Decimal) -> String {
    let kept = value.chars().filter_map(|it| match (it, decimal) {
        ('0'..='9' | '-' | '+', _) | ('.', Decimal::Point) => Some(it),
        (',', Decimal::Comma) => Some('.'),
        _ => None,
    });
    kept.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Table {
        Table::read_from(text.as_bytes(), "a.csv").unwrap().unwrap()
    }

    fn column(text: &str) -> (Vec<String>, Option<Decimal>) {
        let table = read(text);
        let column = table.columns.first().unwrap();
        (column.present().map(str::to_owned).collect(), column.decimal)
    }

    #[test]
    fn thousands_decimal_commas_and_currencies_are_numbers() {
        let owned = |values: &[&str]| values.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        assert_eq!(
            column("x,y\n\"1,234.5\",1\n\"12,345,678\",1\n-7,2\n"),
            (owned(&["1234.5", "12345678", "-7"]), Some(Decimal::Point))
        );
        assert_eq!(
            column("x;y\n1.234,5;1\n0,125;1\n-7,25 %;2\n"),
            (owned(&["1234.5", "0.125", "-7.25"]), Some(Decimal::Comma))
        );
        assert_eq!(
            column("x;y\n€ 5;1\n$1 000.50;1\n;2\n"),
            (owned(&["5", "1000.50"]), Some(Decimal::Point))
        );
        // Semicolons between cells tell what a lone comma is.
        assert_eq!(column("x;y\n1,234;1\n").0, ["1.234"]);
        assert_eq!(column("x,y\n\"1,234\",1\n").0, ["1234"]);
        assert_eq!(column("x,y\n\"1,234\",\"0,5\"\n").0, ["1.234"]);
    }

    #[test]
    fn what_is_no_number_stays_as_it_is() {
        for cell in ["1,2,3", "12:30", "A1,234", "1,23,456", "2020-01-02", "3.5.1", "%", "-"] {
            let text = format!("x,y\n\"{cell}\",1\n\"1,000\",2\n");
            assert_eq!(column(&text), (vec![cell.to_owned(), "1,000".to_owned()], None));
        }
        assert_eq!(column("x,y\n1.5,1\n1e5,2\n").1, None);
    }
}
