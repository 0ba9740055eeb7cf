use proptest::prelude::*;

use super::*;
use crate::task_file::read_task;

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new(files: &[(&str, &str)]) -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap() };
        for (name, text) in files {
            let file = place.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        place
    }

    fn path(&self) -> Utf8PathBuf {
        Utf8Path::from_path(self.folder.path()).unwrap().join("shop")
    }

    fn draft(&self) -> Draft {
        Draft::of(&self.path(), &TaskOptions::default()).unwrap()
    }
}

fn table(header: &str, row: impl Fn(usize) -> String) -> String {
    (0..60).fold(format!("{header}\n"), |text, at| text + &row(at) + "\n")
}

fn flats() -> String {
    table("id,size,rent", |at| format!("{at},{},{}.5", at * 7 % 31, 300 + at * 7 % 31))
}

const EMPTY: &str = "id,size\n61,3\n62,4\n";

#[test]
fn a_folder_without_words_is_drafted_with_guesses_that_are_marked() {
    let place = Place::new(&[("input/train.csv", &flats()), ("input/test.csv", EMPTY)]);
    insta::assert_snapshot!(place.draft().to_yaml(), @r#"
    # Written by `mle-star init` from what lies in this folder. Change what is wrong;
    # lines with CHECK are guesses.

    # The name of the task, for run directories and reports.
    competition_id: shop

    # Target: `rent`, a number (300.5, 301.5, 302.5, 303.5, 304.5, …).
    # Id column: `id`.
    # Tables: `train.csv` (60 rows), `test.csv`.

    # classification, regression, text_classification, image_classification,
    # audio_classification, image_to_image, sequence_to_sequence or tabular
    task_type: regression
    # tabular, text, image, audio or mixed
    data_modality: tabular

    # How predictions are judged.
    # CHECK: nothing says it plainly; `rmse` is a guess (mae, rmsle, r2 fit too)
    evaluation_metric: rmse
    metric_direction: minimize

    # What agents are told about the task. A column between backticks is the
    # target. `description_file: description.md` names a file instead.
    # CHECK: there is no description.md; say more about the task
    description: "Predict `rent` for every row of `test.csv`, learning from `train.csv`."

    # The data, relative to this file.
    data_dir: input
    "#);
}

#[test]
fn an_unknown_metric_leaves_its_direction_open_and_the_file_says_so() {
    let place = Place::new(&[("train.csv", &flats()), ("test.csv", EMPTY)]);
    let options = TaskOptions {
        goal: Some("Earn money.".to_owned()),
        metric: Some("profit".to_owned()),
        direction: None,
    };
    let draft = Draft::of(&place.path(), &options).unwrap();
    assert_eq!((draft.direction, draft.data_dir.as_str()), (None, "."));
    fs::write(place.path().join("task.yaml"), draft.to_yaml()).unwrap();
    let error = read_task(&place.path(), &TaskOptions::default()).unwrap_err().to_string();
    assert!(error.contains("metric_direction"), "{error}");
}

#[test]
fn a_folder_whose_tables_cannot_be_understood_is_drafted_all_the_same() {
    let draft = Place::new(&[("notes.md", "no data")]).draft();
    assert_eq!(draft.seen, None);
    let open: Vec<&str> = draft.open.iter().map(|it| it.subject).collect();
    assert_eq!(open, ["target", "task_type", "evaluation_metric", "description"]);
}

#[test]
fn pictures_and_recordings_are_noticed() {
    let pictures: Vec<(String, &str)> =
        (0..12).map(|at| (format!("input/train/{at}.JPG"), "x")).collect();
    let mut files: Vec<(&str, &str)> =
        pictures.iter().map(|(name, text)| (name.as_str(), *text)).collect();
    let labels = table("id,label", |at| format!("{at}.JPG,{}", ["cat", "dog"][at % 2]));
    files.push(("input/train.csv", &labels));
    files.push(("input/test.csv", "id\n71.JPG\n72.JPG\n"));
    let draft = Place::new(&files).draft();
    assert_eq!(draft.data_modality, DataModality::Image);
    assert_eq!(draft.task_type, TaskType::ImageClassification);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever the data is called, the file says what the draft says.
    #[test]
    fn a_task_file_reads_back_as_it_was_drafted(
        target in "[^\",\r\n\u{feff}]{1,12}", goal in "(?s)\\PC{1,20}[\n\t\u{85}\u{2028}\"'\\\\:#]{0,4}x",
    ) {
        let train = flats().replacen("rent", &format!("\"{target}\""), 1);
        let place = Place::new(&[("input/train.csv", &train), ("input/test.csv", EMPTY)]);
        let options =
            TaskOptions { goal: Some(goal.clone()), metric: Some("mae".to_owned()), direction: None };
        let draft = Draft::of(&place.path(), &options).unwrap();
        fs::write(place.path().join("task.yaml"), draft.to_yaml()).unwrap();
        let task = read_task(&place.path(), &TaskOptions::default());
        let task = task.map_err(|error| TestCaseError::fail(format!("{error}\n{}", draft.to_yaml())))?;
        prop_assert_eq!(task.description, goal);
        prop_assert_eq!(task.evaluation_metric, "mae");
        prop_assert_eq!(task.competition_id, "shop");
        prop_assert_eq!(task.data_dir, place.path().join("input"));
    }
}
