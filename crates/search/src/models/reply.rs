//! The structured replies: one type gives both the schema that is asked for and the parser.

use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

/// A model that the retriever found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RetrievedModel {
    /// Its name.
    pub model_name: String,
    /// Code that shows how to use it.
    pub example_code: String,
}

/// What the retriever replies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RetrieverOutput {
    /// The models, at least one.
    #[serde(deserialize_with = "at_least_one")]
    #[schemars(length(min = 1))]
    pub models: Vec<RetrievedModel>,
}

/// A block to refine and the first idea for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RefinePlan {
    /// The block, copied exactly from the script.
    pub code_block: String,
    /// What to do with it, in 3-5 sentences.
    pub plan: String,
}

/// What the extractor replies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ExtractorOutput {
    /// The proposals, best first, at least one.
    #[serde(deserialize_with = "at_least_one")]
    #[schemars(length(min = 1))]
    pub plans: Vec<RefinePlan>,
}

/// Whether a block leaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub enum LeakageStatus {
    /// It does.
    #[serde(rename = "Yes Data Leakage")]
    Yes,
    /// It does not.
    #[serde(rename = "No Data Leakage")]
    No,
}

/// The finding about one block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct LeakageAnswer {
    /// Whether it leaks.
    pub leakage_status: LeakageStatus,
    /// The block, copied exactly from the script.
    pub code_block: String,
}

/// What the leakage detector replies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct LeakageDetectionOutput {
    /// The findings, at least one.
    #[serde(deserialize_with = "at_least_one")]
    #[schemars(length(min = 1))]
    pub answers: Vec<LeakageAnswer>,
}

/// Whether a solution is more than a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ContaminationVerdict {
    /// It is its own work.
    Novel,
    /// It is a copy.
    Same,
}

/// What the contamination check replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DataContaminationResult {
    /// The verdict.
    pub verdict: ContaminationVerdict,
}

/// Which structured reply a call asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "each names its type")]
pub enum OutputSchema {
    RetrieverOutput,
    ExtractorOutput,
    LeakageDetectionOutput,
    DataContaminationResult,
}

impl OutputSchema {
    /// The JSON Schema, inlined and without `$schema`.
    pub fn json_schema(self) -> Value {
        match self {
            Self::RetrieverOutput => schema_of::<RetrieverOutput>(),
            Self::ExtractorOutput => schema_of::<ExtractorOutput>(),
            Self::LeakageDetectionOutput => schema_of::<LeakageDetectionOutput>(),
            Self::DataContaminationResult => schema_of::<DataContaminationResult>(),
        }
    }

    /// The schema in the envelope that the agent runtime wants.
    pub fn output_format(self) -> Value {
        json!({ "type": "json_schema", "schema": self.json_schema() })
    }
}

fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    SchemaGenerator::new(settings).into_root_schema_for::<T>().to_value()
}

fn at_least_one<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let items = Vec::deserialize(deserializer)?;
    if items.is_empty() {
        return Err(serde::de::Error::invalid_length(0, &"at least one entry"));
    }
    Ok(items)
}

impl<'de> Deserialize<'de> for LeakageStatus {
    /// Models vary the case and pad with blanks; the words must be right.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match text.trim().to_lowercase().as_str() {
            "yes data leakage" => Ok(Self::Yes),
            "no data leakage" => Ok(Self::No),
            _ => Err(serde::de::Error::unknown_variant(
                &text,
                &["Yes Data Leakage", "No Data Leakage"],
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// REQ-DM-014, REQ-DM-015, REQ-DM-041, REQ-DM-049
    #[test]
    fn a_schema_is_inlined_and_closed() {
        insta::assert_snapshot!(
            serde_json::to_string_pretty(&OutputSchema::RetrieverOutput.output_format()).unwrap(),
            @r#"
        {
          "type": "json_schema",
          "schema": {
            "type": "object",
            "additionalProperties": false,
            "properties": {
              "models": {
                "type": "array",
                "items": {
                  "description": "A model that the retriever found.",
                  "type": "object",
                  "properties": {
                    "model_name": {
                      "description": "Its name.",
                      "type": "string"
                    },
                    "example_code": {
                      "description": "Code that shows how to use it.",
                      "type": "string"
                    }
                  },
                  "additionalProperties": false,
                  "required": [
                    "model_name",
                    "example_code"
                  ]
                },
                "description": "The models, at least one.",
                "minItems": 1
              }
            },
            "required": [
              "models"
            ],
            "description": "What the retriever replies.",
            "title": "RetrieverOutput"
          }
        }
        "#
        );
    }

    #[test]
    fn no_schema_refers_to_another_or_names_a_dialect() {
        for schema in [
            OutputSchema::RetrieverOutput,
            OutputSchema::ExtractorOutput,
            OutputSchema::LeakageDetectionOutput,
            OutputSchema::DataContaminationResult,
        ] {
            let text = schema.json_schema().to_string();
            assert!(!text.contains("$ref") && !text.contains("$schema"), "{text}");
        }
    }

    /// REQ-DM-017, REQ-DM-018, REQ-DM-019
    #[test]
    fn replies_are_checked_when_read() {
        assert!(serde_json::from_str::<ExtractorOutput>(r#"{"plans": []}"#).is_err());
        let answers = |status: &str| {
            serde_json::from_value::<LeakageDetectionOutput>(
                json!({"answers": [{"leakage_status": status, "code_block": "x"}]}),
            )
        };
        assert_eq!(
            answers(" yes data leakage ").unwrap().answers[0].leakage_status,
            LeakageStatus::Yes
        );
        assert!(answers("perhaps").is_err());
    }
}
