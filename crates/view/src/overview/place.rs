//! Where in a run a key stands.

/// A key such as `phase2/path-1/outer-0/inner-2/coder`, taken apart.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    key: &'a str,
}

impl<'a> Place<'a> {
    pub(crate) fn of(key: &'a str) -> Self {
        Self { key }
    }

    /// The number in the part `name-3`.
    pub(crate) fn number(self, name: &str) -> Option<usize> {
        let mut parts = self.key.split('/').filter_map(|part| part.strip_prefix(name));
        parts.find_map(|rest| rest.strip_prefix('-')?.parse().ok())
    }

    /// The lane that works here, for journals whose records do not name it.
    pub(crate) fn lane(self) -> String {
        let mut parts = self.key.split('/');
        match (parts.next(), parts.next()) {
            (Some("phase1"), Some("early_submission")) | (Some("finalization"), _) => {
                "final".to_owned()
            }
            (Some("phase1"), Some(part)) if part.starts_with("candidate-") => part.to_owned(),
            (Some("phase1"), Some(part)) if part.starts_with("merge-") || part == "checks" => {
                "merge".to_owned()
            }
            (Some("phase2"), Some(part)) if part.starts_with("path-") => part.to_owned(),
            (Some("phase3"), _) => "ensemble".to_owned(),
            _ => "main".to_owned(),
        }
    }

    /// The place whose script this belongs to, if it belongs to one that is judged.
    pub(crate) fn solution(self) -> Option<&'a str> {
        let mut end = 0;
        for part in self.key.split('/') {
            end += part.len();
            let is_judged = ["candidate-", "merge-", "inner-", "round-"]
                .iter()
                .any(|it| part.strip_prefix(it).is_some_and(|rest| rest.parse::<usize>().is_ok()));
            if is_judged || ["checks", "early_submission", "finalization"].contains(&part) {
                return self.key.get(..end);
            }
            end += 1;
        }
        None
    }

    /// The path and outer step that this belongs to.
    pub(crate) fn outer_step(self) -> Option<(usize, usize)> {
        Some((self.number("path")?, self.number("outer")?))
    }

    /// The last part.
    pub(crate) fn last(self) -> &'a str {
        self.key.rsplit('/').next().unwrap_or_default()
    }

    pub(crate) fn has(self, part: &str) -> bool {
        self.key.split('/').any(|it| it == part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_says_which_lane_and_which_script_it_belongs_to() {
        let found = |key| (Place::of(key).lane(), Place::of(key).solution());
        assert_eq!(found("phase1/retriever"), ("main".to_owned(), None));
        assert_eq!(
            found("phase1/candidate-0/attempt-1/run"),
            ("candidate-0".to_owned(), Some("phase1/candidate-0"))
        );
        assert_eq!(found("phase1/checks/data"), ("merge".to_owned(), Some("phase1/checks")));
        assert_eq!(
            found("phase2/path-1/outer-2/inner-0/coder"),
            ("path-1".to_owned(), Some("phase2/path-1/outer-2/inner-0"))
        );
        assert_eq!(found("phase2/path-1/outer-2/study/attempt-0/run"), ("path-1".to_owned(), None));
        assert_eq!(found("finalization/as_it_is/run"), ("final".to_owned(), Some("finalization")));
        assert_eq!(found(""), ("main".to_owned(), None));
        assert_eq!(Place::of("phase2/path-1/outer-2/ablation").outer_step(), Some((1, 2)));
    }
}
