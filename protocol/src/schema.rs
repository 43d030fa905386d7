//! The JSON Schema of the whole protocol, made from the method table.

use crate::initialize::PROTOCOL_VERSION;
use crate::methods::METHODS;
use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use serde_json::{Map, Value, json};

/// The schema document: a definition for each wire type, and under `methods` a row for each
/// method with references to its params and result.
pub fn document() -> Value {
    let settings = SchemaSettings::draft2020_12().with_transform(OptionalIsNullable);
    let mut generator = settings.into_generator();
    let methods: Map<String, Value> = METHODS
        .iter()
        .map(|method| {
            let mut row = json!({
                "kind": method.kind.name(),
                "since": method.since,
                "params": (method.params.schema)(&mut generator),
            });
            if let Some(result) = method.result {
                row["result"] = (result.schema)(&mut generator).into();
            }
            (method.name.to_owned(), row)
        })
        .collect();
    let definitions = generator.take_definitions(true);
    sorted(json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The reminderd protocol",
        "description": "Generated from the method table; SPEC.md is normative.",
        "protocolVersion": PROTOCOL_VERSION,
        "methods": methods,
        "$defs": definitions,
    }))
}

/// Lets every member that may be left out be `null` as well, which means the same.
#[derive(Clone, Debug)]
struct OptionalIsNullable;

impl Transform for OptionalIsNullable {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        let required: Vec<String> = schema
            .get("required")
            .and_then(Value::as_array)
            .map(|names| names.iter().filter_map(Value::as_str).map(str::to_owned).collect())
            .unwrap_or_default();
        let Some(Value::Object(properties)) = schema.get_mut("properties") else { return };
        for (name, property) in properties {
            if let (false, Some(Value::String(only))) =
                (required.contains(name), property.get("type"))
            {
                property["type"] = json!([only, "null"]);
            }
        }
    }
}

/// The same value with sorted members, whatever order this build's maps keep.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.into_iter().collect();
            members.sort_by(|(left, _), (right, _)| left.cmp(right));
            members.into_iter().map(|(name, value)| (name, sorted(value))).collect()
        }
        Value::Array(items) => items.into_iter().map(sorted).collect(),
        other => other,
    }
}
