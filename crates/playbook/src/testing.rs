//! Small tasks for the tests.

use camino::Utf8Path;
use mle_star_profile::{Bounds, profile};
use mle_star_search::models::{DataModality, MetricDirection, TaskDescription, TaskType};

use crate::catalogue::Shelf;
use crate::script::{Kind, Script};
use crate::{Options, Playbook, ShapeError, assembly};

/// A task on a folder with these files.
pub(crate) fn playbook(metric: &str, files: &[(&str, &[u8])]) -> Result<Playbook, ShapeError> {
    let folder = tempfile::tempdir().unwrap();
    let path = Utf8Path::from_path(folder.path()).unwrap();
    for (name, text) in files {
        fs_err::write(path.join(name), text).unwrap();
    }
    let direction = match metric {
        "rmse" | "mae" | "rmsle" | "log_loss" | "multiclass_log_loss" => MetricDirection::Minimize,
        _ => MetricDirection::Maximize,
    };
    let task = TaskDescription::new(
        "small",
        TaskType::Tabular,
        DataModality::Tabular,
        metric,
        direction,
        "Predict it.",
    );
    let task = TaskDescription { data_dir: path.to_owned(), ..task.unwrap() };
    let profile = profile(path, &Bounds::default()).unwrap();
    Playbook::new(&task, &profile, &[], Options::default())
}

/// A table with every kind of column.
pub(crate) fn rows(count: usize, target: impl Fn(usize) -> String) -> String {
    let mut text = "id,size,colour,cabin,seen,note,y\n".to_owned();
    for row in 0..count {
        let colour = ["red", "green", "blue"][row % 3];
        let cabin = format!("{}/{row}/P", ["A", "B"][row % 2]);
        let note = format!("some words about row {row} here");
        let (size, day) = ((row * 37) % 101, 1 + row % 28);
        let line =
            format!("{row},{size}.5,{colour},{cabin},2020-01-{day:02},{note},{}\n", target(row));
        text += &line;
    }
    text
}

/// The same without the last column.
pub(crate) fn test_rows(count: usize) -> String {
    let text = rows(count, |_| String::new());
    let lines = text.lines().map(|line| line.rsplit_once(',').unwrap().0.to_owned() + "\n");
    lines.collect()
}

pub(crate) fn binary() -> Playbook {
    let train = rows(200, |row| (row % 2).to_string());
    playbook("accuracy", &[("train.csv", train.as_bytes()), ("test.csv", test_rows(50).as_bytes())])
        .unwrap()
}

pub(crate) fn regression() -> Playbook {
    let train = rows(200, |row| format!("{}.25", row * 3));
    playbook("rmse", &[("train.csv", train.as_bytes()), ("test.csv", test_rows(50).as_bytes())])
        .unwrap()
}

pub(crate) fn multiclass() -> Playbook {
    let train = rows(200, |row| ["cat", "dog", "owl"][row % 3].to_owned());
    let files =
        [("train.csv", train.as_bytes()), ("test.csv", &test_rows(50).into_bytes() as &[u8])];
    playbook("multiclass_log_loss", &files).unwrap()
}

pub(crate) fn playbooks() -> Vec<Playbook> {
    vec![binary(), regression(), multiclass()]
}

/// A merged solution with the two best models.
pub(crate) fn two_models(playbook: &Playbook) -> Script {
    let mut recipes = playbook.catalogue.on(Shelf::Recipes);
    let mut script = assembly::solution(playbook, recipes.next().unwrap()).unwrap();
    script.insert(recipes.next().unwrap().as_section());
    script.relist();
    assert_eq!(script.names(Kind::Model).len(), 2);
    script
}
