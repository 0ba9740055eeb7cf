//! What the playbook knows: pieces of Python, one file each, with front matter that says when they
//! fit. A piece that varies another holds only the difference. Files are embedded by the build
//! script; adding one is all it takes.

mod change;

use std::ops::RangeInclusive;

use crate::script::{Kind, Section};
use crate::shape::Shape;

/// Every file below `catalogue/`: its path and its text.
static FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/catalogue.rs"));

/// Where a piece comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shelf {
    /// The plain version of a section.
    Sections,
    /// A model.
    Recipes,
    /// New columns.
    Features,
    /// Another version of a section.
    Refinements,
    /// A way to combine solutions.
    Ensembles,
}

/// One file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Piece {
    pub(crate) shelf: Shelf,
    /// What it is a section of.
    pub(crate) kind: Kind,
    /// The name of its file.
    pub(crate) slug: String,
    /// The name in its header.
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) why: String,
    kinds: Vec<String>,
    metrics: Vec<String>,
    pub(crate) needs: Vec<String>,
    columns: Vec<String>,
    rows: RangeInclusive<u64>,
    classes: RangeInclusive<u64>,
    /// Which section a refinement replaces.
    pub(crate) of: Option<String>,
    rank: i64,
    pub(crate) cost: f64,
    /// Whether it is part of every first script.
    pub(crate) from_the_start: bool,
    pub(crate) body: String,
}

/// All pieces, best first.
#[derive(Debug, Clone)]
pub(crate) struct Catalogue {
    pieces: Vec<Piece>,
}

impl Catalogue {
    /// The pieces that fit the data and the installed packages.
    pub(crate) fn fitting(shape: &Shape, packages: &[String]) -> Self {
        let mut catalogue = Self::everything().0;
        catalogue.pieces.retain(|piece| piece.fits(shape) && piece.can_run(packages));
        // A model of words alone is no good start where words are not the main thing. The sort is
        // stable.
        let text_alone = |piece: &Piece| piece.shelf == Shelf::Recipes && piece.columns == ["text"];
        catalogue.pieces.sort_by_key(|piece| !shape.is_about_text && text_alone(piece));
        catalogue
    }

    /// All pieces, and what is wrong with the files that could not be read.
    pub(crate) fn everything() -> (Self, Vec<String>) {
        let (mut pieces, mut problems) = (Vec::new(), Vec::new());
        for (path, text) in FILES {
            match Piece::read(path, text) {
                Ok(piece) => pieces.push(piece),
                Err(problem) => problems.push(format!("catalogue/{path}: {problem}")),
            }
        }
        pieces.sort_by(|a: &Piece, b| (a.rank, &a.slug).cmp(&(b.rank, &b.slug)));
        (Self { pieces }, problems)
    }

    pub(crate) fn on(&self, shelf: Shelf) -> impl Iterator<Item = &Piece> {
        self.pieces.iter().filter(move |piece| piece.shelf == shelf)
    }

    /// The plain section of a kind.
    pub(crate) fn section(&self, slug: &str) -> Option<&Piece> {
        self.on(Shelf::Sections).find(|piece| piece.slug == slug)
    }

    /// Other versions of the section with this kind and name.
    pub(crate) fn refinements(&self, kind: Kind, name: Option<&str>) -> Vec<&Piece> {
        let fits = |piece: &&Piece| {
            piece.kind == kind && piece.of.as_deref().is_none_or(|of| Some(of) == name)
        };
        self.on(Shelf::Refinements).filter(fits).collect()
    }

    /// The piece that a tag such as `model/lightgbm_slow` means.
    pub(crate) fn tagged(&self, tag: &str) -> Option<&Piece> {
        self.pieces.iter().find(|piece| piece.tag() == tag)
    }
}

impl Piece {
    /// What stands at the end of a plan, so that the piece is found again.
    pub(crate) fn tag(&self) -> String {
        let shelf = match self.shelf {
            Shelf::Sections => "sections",
            Shelf::Recipes => "recipes",
            Shelf::Features => "features",
            Shelf::Ensembles => "ensembles",
            Shelf::Refinements if self.kind == Kind::Features => "refined_features",
            Shelf::Refinements => self.kind.word(),
        };
        format!("{shelf}/{}", self.slug)
    }

    /// The piece as a sentence and its tag.
    pub(crate) fn plan(&self) -> String {
        format!("{} [{}]", self.why, self.tag())
    }

    /// Whether it can be said how much each solution counts.
    pub(crate) fn is_shared_out(&self) -> bool {
        self.body.lines().any(|line| line.starts_with("SHARES = "))
    }

    /// The piece as a section of a script.
    pub(crate) fn as_section(&self) -> Section {
        let name = match self.kind {
            Kind::Features | Kind::Model | Kind::Ensemble => Some(self.name.as_str()),
            Kind::Setup
            | Kind::Data
            | Kind::Solution
            | Kind::Target
            | Kind::Table
            | Kind::Members
            | Kind::Blend
            | Kind::Decision
            | Kind::Validation
            | Kind::Study
            | Kind::Submission => None,
        };
        Section::new(self.kind, name, &self.body)
    }

    fn read(path: &str, text: &str) -> Result<Self, String> {
        let (path, _) = path.rsplit_once('.').ok_or("the file has no ending")?;
        let folders: Vec<&str> = path.split('/').collect();
        let (shelf, kind, slug) = match folders.as_slice() {
            ["sections", "union"] => (Shelf::Sections, Kind::Members, "union"),
            ["sections", slug] => {
                // `validation_time` is validation for a special case.
                let word = slug.split('_').next().unwrap_or(slug);
                let kind = Kind::named(word).ok_or("the file is not named after a section")?;
                (Shelf::Sections, kind, *slug)
            }
            ["recipes", slug] => (Shelf::Recipes, Kind::Model, *slug),
            ["features", slug] => (Shelf::Features, Kind::Features, *slug),
            ["ensembles", slug] => (Shelf::Ensembles, Kind::Ensemble, *slug),
            ["refinements", kind, slug] => {
                let kind = Kind::named(kind).ok_or("its folder is not named after a section")?;
                (Shelf::Refinements, kind, *slug)
            }
            _ => return Err("the catalogue has no such folder".to_owned()),
        };
        let (front, body) = front_matter(text);
        let value = |key: &str| front.iter().find(|(it, _)| it == key).map(|(_, value)| *value);
        let words = |key: &str| -> Vec<String> {
            let split = |it: char| it.is_whitespace() || it == '|' || it == ',';
            let words = value(key).unwrap_or_default().split(split);
            words.filter(|it| !it.is_empty()).map(str::to_owned).collect()
        };
        for (key, _) in &front {
            if !KEYS.contains(&key.as_str()) {
                return Err(format!("unknown key `{key}`"));
            }
        }
        let mut piece = Self {
            shelf,
            kind,
            slug: slug.to_owned(),
            name: value("name").ok_or("`name` is missing")?.to_owned(),
            title: value("title").unwrap_or_default().to_owned(),
            why: value("why").ok_or("`why` is missing")?.to_owned(),
            kinds: words("kinds"),
            metrics: words("metrics"),
            needs: words("needs"),
            columns: words("columns"),
            rows: range("rows", value("rows"))?,
            classes: range("classes", value("classes"))?,
            of: value("of").map(str::to_owned),
            rank: value("rank").unwrap_or("50").parse().map_err(|_| "`rank` is no number")?,
            cost: value("cost").unwrap_or("1").parse().map_err(|_| "`cost` is no number")?,
            from_the_start: false,
            body: match value("changes") {
                Some(base) => change::apply(body, whole(base)?)?,
                None => body.to_owned(),
            },
        };
        piece.from_the_start = value("stage") == Some("init") || piece.rank < FIRST_RANKS;
        Ok(piece)
    }

    /// What the assembly of scripts relies on. The catalogue is part of the program, so it is
    /// enough that a test asks.
    #[cfg(test)]
    fn check(&self) -> Result<(), String> {
        mle_star_python::check_syntax(&self.body).map_err(|error| error.to_string())?;
        let function = |prefix: &str, name: &str| format!("def {prefix}_{name}(");
        let wanted = match (self.shelf, self.kind) {
            (Shelf::Recipes, _) => Some(function("model", &self.name)),
            (Shelf::Features, _) => Some(function("features", &self.name)),
            (Shelf::Refinements, Kind::Model) => {
                Some(function("model", self.of.as_deref().ok_or("`of` is missing")?))
            }
            (Shelf::Refinements, Kind::Features) => {
                Some(function("features", self.of.as_deref().ok_or("`of` is missing")?))
            }
            (_, Kind::Table) => Some("FEATURES = []\n".to_owned()),
            (Shelf::Sections, Kind::Members) if self.slug == "union" => {
                Some("SOLUTIONS = []\n".to_owned())
            }
            (_, Kind::Members) => Some("MODELS = {}\n".to_owned()),
            (Shelf::Ensembles, _) | (_, Kind::Blend) => Some("def weigh(".to_owned()),
            (_, _) => None,
        };
        match wanted {
            Some(wanted) if !self.body.contains(&wanted) => {
                Err(format!("it does not hold `{}`", wanted.trim_end()))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn fits(&self, shape: &Shape) -> bool {
        let named =
            |list: &[String], word: &str| list.is_empty() || list.iter().any(|it| it == word);
        named(&self.kinds, &shape.kind.to_string())
            && named(&self.metrics, shape.metric)
            && self.rows.contains(&shape.rows)
            && (shape.classes == 0 || self.classes.contains(&shape.classes))
            && (self.columns.is_empty() || self.columns.iter().any(|it| shape.has_columns(it)))
    }

    /// Whether what it needs is installed. Nothing is known of an empty list.
    fn can_run(&self, packages: &[String]) -> bool {
        let installed = |need: &String| {
            let need = normal(need);
            packages.iter().map(|it| normal(it)).any(|it| {
                it == need || it.strip_prefix(&need).is_some_and(|it| it == "-cpu" || it == "-gpu")
            })
        };
        packages.is_empty() || self.needs.iter().all(installed)
    }
}

/// Features with a smaller rank are part of every first script.
const FIRST_RANKS: i64 = 10;

const KEYS: [&str; 14] = [
    "name", "title", "why", "kinds", "metrics", "needs", "columns", "rows", "of", "rank", "cost",
    "stage", "classes", "changes",
];

/// The body of a piece that stands by itself, such as `recipes/svm`.
fn whole(path: &str) -> Result<&'static str, String> {
    let file = FILES.iter().find(|(it, _)| it.strip_suffix(".py") == Some(path));
    file.map(|(_, text)| front_matter(text).1).ok_or_else(|| format!("there is no `{path}.py`"))
}

fn normal(package: &str) -> String {
    match package.to_lowercase().replace('_', "-").as_str() {
        "sklearn" => "scikit-learn".to_owned(),
        other => other.to_owned(),
    }
}

/// The lines `# key: value` at the top, and the rest.
fn front_matter(text: &str) -> (Vec<(String, &str)>, &str) {
    let mut front = Vec::new();
    let mut rest = text;
    while let Some((line, after)) = rest.split_once('\n') {
        let Some((key, value)) = line.strip_prefix("# ").and_then(|it| it.split_once(':')) else {
            break;
        };
        if key.contains(' ') {
            break;
        }
        front.push((key.to_owned(), value.trim()));
        rest = after;
    }
    (front, rest.trim_start_matches('\n'))
}

/// Reads `10..2000`, both ends included, either of them open.
fn range(key: &str, value: Option<&str>) -> Result<RangeInclusive<u64>, String> {
    let Some(value) = value else { return Ok(0..=u64::MAX) };
    let wrong = || format!("`{key}` is not of the form 0..1000");
    let (from, to) = value.split_once("..").ok_or_else(wrong)?;
    let number = |text: &str, default: u64| match text.trim().trim_start_matches('=') {
        "" => Ok(default),
        text => text.replace('_', "").parse().map_err(|_| wrong()),
    };
    Ok(number(from, 0)?..=number(to, u64::MAX)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A blend of a solution may be a way to combine solutions, but stands in another script.
    #[test]
    fn what_only_ensembles_define_nothing_else_calls() {
        let (catalogue, _) = Catalogue::everything();
        let union = catalogue.section("union").unwrap();
        let defined =
            union.body.lines().filter_map(|line| line.strip_prefix("def ")?.split('(').next());
        let names: Vec<String> =
            defined.filter(|name| *name != "members").map(|name| format!("{name}(")).collect();
        assert!(names.len() > 2, "{names:?}");
        for piece in catalogue.pieces.iter().filter(|it| it.kind != Kind::Ensemble && *it != union)
        {
            let called = names.iter().find(|name| piece.body.contains(name.as_str()));
            assert_eq!(called, None, "in {}", piece.tag());
        }
    }

    #[test]
    fn every_file_of_the_catalogue_can_be_used() {
        let (catalogue, mut problems) = Catalogue::everything();
        for piece in &catalogue.pieces {
            problems.extend(piece.check().err().map(|it| format!("{}: {it}", piece.tag())));
        }
        assert!(problems.is_empty(), "{}", problems.join("\n"));
        for kind in [
            "setup",
            "target",
            "table",
            "members",
            "union",
            "blend",
            "decision",
            "validation",
            "submission",
        ] {
            assert!(catalogue.section(kind).is_some(), "there is no sections/{kind}.py");
        }
        assert!(catalogue.on(Shelf::Recipes).count() >= 2);
        assert!(catalogue.on(Shelf::Ensembles).count() >= 1);
    }

    #[test]
    fn tags_are_unique() {
        let (catalogue, _) = Catalogue::everything();
        let mut tags: Vec<String> = catalogue.pieces.iter().map(Piece::tag).collect();
        tags.sort();
        let count = tags.len();
        tags.dedup();
        assert_eq!(tags.len(), count);
    }

    #[test]
    fn a_bad_file_is_named_with_what_is_wrong() {
        let read = |path: &str, text: &str| {
            Piece::read(path, text).and_then(|piece| piece.check()).unwrap_err()
        };
        assert_eq!(read("recipes/a.py", "x = 1\n"), "`name` is missing");
        let front = "# name: a\n# why: because\n";
        assert_eq!(read("recipes/a.py", front), "it does not hold `def model_a(`");
        assert_eq!(read("odd/a.py", front), "the catalogue has no such folder");
        assert_eq!(
            read("recipes/a.py", &format!("{front}# colour: red\n")),
            "unknown key `colour`"
        );
        let bad_rows = format!("{front}# rows: many\n\ndef model_a():\n    pass\n");
        assert_eq!(read("recipes/a.py", &bad_rows), "`rows` is not of the form 0..1000");
        assert!(read("recipes/a.py", &format!("{front}\ndef model_a(:\n")).contains("line"));
        let change = |base: &str| read("recipes/a.diff", &format!("{front}# changes: {base}\n"));
        assert_eq!(change("recipes/none"), "there is no `recipes/none.py`");
        assert_eq!(change("recipes/svm"), "it does not hold `def model_a(`");
    }

    #[test]
    fn packages_are_known_by_their_other_names() {
        let text = "# name: a\n# why: w\n# needs: xgboost sklearn\n\ndef model_a():\n    pass\n";
        let piece = Piece::read("recipes/a.py", text).unwrap();
        let packages = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        assert!(piece.can_run(&packages(&["xgboost-cpu", "scikit-learn"])));
        assert!(!piece.can_run(&packages(&["xgboost-tools", "scikit-learn"])));
        assert!(piece.can_run(&[]));
    }
}
