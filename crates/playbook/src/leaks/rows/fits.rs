//! What is fitted on which rows, and what is judged by rows it knows.

use tree_sitter::Node;

use super::{Culprit, Flow, Reason, Rows};
use crate::leaks::Leak;
use crate::leaks::syntax::{called, children, keyword, positional, receiver, string, text};

impl<'a> Flow<'a> {
    pub(super) fn call(&mut self, call: Node<'a>, statement: Node<'a>) {
        let name = called(self.source, call);
        let object = receiver(call);
        let arguments = positional(call);
        let first = arguments.first().copied().or_else(|| keyword(self.source, call, "X"));
        match name {
            "fit" | "fit_transform" | "fit_resample" | "fit_predict" => {
                if let Some(labels) = arguments.get(1) {
                    self.learn_target(*labels);
                }
                let (Some(object), Some(first)) = (object, first) else { return };
                self.fit(name, object, first, statement);
            }
            "cross_val_score" | "cross_val_predict" | "cross_validate" => {
                if let Some(features) = arguments.get(1)
                    && self.value(*features).has_target
                {
                    let places = vec![self.place(*features)];
                    let why = "the target is among the features";
                    self.report(statement, Reason::TargetLeft, places, why);
                }
            }
            "predict" | "predict_proba" | "decision_function" => {
                let Some(object) = object.filter(|it| it.kind() == "identifier") else { return };
                let Some(rows) = first.map(|it| self.value(it).rows) else { return };
                let Some((fitted, start, end)) =
                    self.fitted.get(text(self.source, object)).copied()
                else {
                    return;
                };
                let judged =
                    matches!((fitted, rows), (Rows::All | Rows::Held | Rows::Mixed, Rows::Held))
                        || (matches!(fitted, Rows::All)
                            && rows == Rows::All
                            && self.judges_itself());
                if judged && self.known.is_some() {
                    let before = self.source.get(..start).unwrap_or_default();
                    let from = before.rfind('\n').map_or(0, |it| it + 1);
                    let block = self.source.get(from..end).unwrap_or_default().to_owned();
                    let why = "a model is judged by rows it was fitted on";
                    let places = first.map(|it| self.place(it)).into_iter().collect();
                    let leak = Leak { block, why };
                    let at = start..end;
                    self.found.push(Culprit { leak, reason: Reason::Judged, at, places });
                }
            }
            "pop" => {
                if let Some(column) = first.and_then(|it| string(self.source, it))
                    && self.is_target(column)
                {
                    self.drop_target(object);
                }
            }
            "concat" => self.repeated(call, statement),
            "remove" => self.drop_target(object),
            "drop"
                if keyword(self.source, call, "inplace").is_some() && self.drops_target(call) =>
            {
                self.drop_target(object);
            }
            _ => self.told(name, &arguments, statement),
        }
    }

    /// A call of a function that learns from what it is given.
    fn told(&mut self, name: &str, arguments: &[Node<'a>], statement: Node<'a>) {
        let Some(known) = &self.known else { return };
        let learning = known.learning.iter().filter(|it| it.0 == name).map(|it| it.1);
        let given: Vec<Node<'a>> =
            learning.filter_map(|place| arguments.get(place).copied()).collect();
        for node in given {
            let value = self.value(node);
            let wrong = value.rows == Rows::Mixed
                || (value.rows == Rows::All && self.is_before_split(statement));
            if wrong && !value.is_statistic {
                let why = "a function learns from all rows before they are split";
                self.report(statement, Reason::Prepared, vec![self.place(node)], why);
            }
        }
    }

    /// `data = pd.concat([data, data[data.rare]])`: a split would put copies on both sides.
    fn repeated(&mut self, call: Node<'a>, statement: Node<'a>) {
        let Some(list) = positional(call).first().copied().filter(|it| it.kind() == "list") else {
            return;
        };
        let parts = children(list);
        let all_rows = |it: &&Node<'a>| self.value(**it).rows == Rows::All;
        let across = keyword(self.source, call, "axis").is_some();
        let mut whole = parts.iter().filter(|it| it.kind() == "identifier").filter(all_rows);
        let copied = whole.any(|whole| {
            let name = text(self.source, *whole);
            parts.iter().any(|it| {
                it.kind() == "subscript"
                    && self.root(*it).is_some_and(|it| text(self.source, it) == name)
            })
        });
        if copied && !across && self.is_before_split(statement) {
            let why = "rows are repeated before they are split";
            self.report(statement, Reason::Repeated, Vec::new(), why);
        }
    }

    /// Whether the script has no split at all and yet prints a score.
    fn judges_itself(&self) -> bool {
        let split = self.known.as_ref().is_some_and(|it| it.last_split.is_some());
        !split && self.source.contains("Final Validation Performance")
    }

    fn fit(&mut self, method: &str, object: Node<'a>, first: Node<'a>, statement: Node<'a>) {
        let name = text(self.source, object);
        let class = match object.kind() {
            "call" => called(self.source, object),
            _ => self.classes.get(name).copied().unwrap_or_default(),
        };
        let value = self.value(first);
        if learns_nothing(class) || value.is_statistic {
            return;
        }
        let prepares = method != "fit" && method != "fit_predict" || is_preparation(class);
        let places = vec![self.place(first)];
        if prepares {
            let why = match value.rows {
                Rows::All if self.is_before_split(statement) => {
                    "something is fitted on all rows before they are split"
                }
                Rows::Mixed => "something is fitted on test rows too",
                Rows::Held => "something is fitted on held-out rows",
                Rows::Test => "something is fitted on test rows",
                Rows::All | Rows::Part | Rows::Unknown => {
                    let learning = self.function.zip(value.parameter);
                    self.learning.extend(learning.filter(|_| value.rows == Rows::Unknown));
                    return;
                }
            };
            self.report(statement, Reason::Prepared, places, why);
            return;
        }
        if value.has_target && value.rows != Rows::Unknown {
            let why = "the target is among the features";
            self.report(statement, Reason::TargetLeft, places.clone(), why);
        }
        if value.rows == Rows::Mixed {
            let why = "something is fitted on test rows too";
            self.report(statement, Reason::Prepared, places, why);
        }
        if object.kind() == "identifier" {
            self.fitted.insert(name, (value.rows, statement.start_byte(), statement.end_byte()));
        }
    }
}

/// Classes that prepare data and learn something from it.
fn is_preparation(class: &str) -> bool {
    ["Scaler", "Imputer", "Encoder", "Vectorizer", "Transformer", "Discretizer"]
        .iter()
        .any(|it| class.ends_with(it))
        || matches!(
            class,
            "PCA"
                | "TruncatedSVD"
                | "NMF"
                | "KMeans"
                | "MiniBatchKMeans"
                | "UMAP"
                | "FastICA"
                | "SelectKBest"
                | "SelectPercentile"
                | "SelectFromModel"
                | "RFE"
                | "RFECV"
                | "VarianceThreshold"
                | "SMOTE"
                | "ADASYN"
                | "RandomOverSampler"
                | "RandomUnderSampler"
                | "LatentDirichletAllocation"
        )
}

/// Classes that learn nothing which could leak: codes for labels, and what works row by row.
fn learns_nothing(class: &str) -> bool {
    matches!(
        class,
        "LabelEncoder"
            | "LabelBinarizer"
            | "MultiLabelBinarizer"
            | "FunctionTransformer"
            | "Normalizer"
            | "HashingVectorizer"
            | "PolynomialFeatures"
            | "Binarizer"
    )
}
