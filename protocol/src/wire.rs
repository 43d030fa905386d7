//! What the wire types share: tolerant enums and the difference between `null` and absent.
//!
//! A member that may be left out may also be `null`; both mean the same. Where `null` says
//! something of its own, the member is required and its type is written with [`present`].

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};
use std::borrow::Cow;
use std::marker::PhantomData;

/// Reads a member that may be absent or `null`, where both mean the type's default.
pub(crate) fn null_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Reads a member that may be `null` but not absent.
///
/// Serde lets an `Option` be missing only when it reads it itself, so going through this
/// function is what makes the member required.
pub(crate) fn present<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::deserialize(deserializer)
}

/// Whether a switch is off, which is how an absent one is written.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
pub(crate) fn is_false(value: &bool) -> bool {
    !*value
}

/// The schema of a required member that may be `null`; it is never a value.
pub(crate) struct NullOr<T>(PhantomData<T>);

impl<T: JsonSchema> JsonSchema for NullOr<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("NullOr{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let schema = generator.subschema_for::<T>();
        json_schema!({ "anyOf": [schema, { "type": "null" }] })
    }
}

/// The params of a method that needs none: absent, `null`, `[]` and any object will do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct NoParams {}

impl<'de> Deserialize<'de> for NoParams {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error;
        match serde_json::Value::deserialize(deserializer)? {
            serde_json::Value::Null | serde_json::Value::Object(_) => Ok(Self {}),
            serde_json::Value::Array(items) if items.is_empty() => Ok(Self {}),
            other => Err(D::Error::custom(format!("expected no params, found {other}"))),
        }
    }
}

impl JsonSchema for NoParams {
    fn schema_name() -> Cow<'static, str> {
        "NoParams".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "The params of a method that needs none.",
            "type": ["object", "array", "null"],
            "maxItems": 0,
        })
    }
}

/// Declares an enum of known words that keeps any other value as text.
///
/// A newer client may say a word that this build does not know. Such a word must not fail the
/// message that carries it, so it is read as `Unknown`, and the daemon skips and counts it.
macro_rules! open_enum {
    (
        $(#[doc = $about:literal])*
        pub enum $name:ident {
            $( $(#[doc = $doc:literal])* $variant:ident = $text:literal, )+
        }
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $( $(#[doc = $doc])* $variant, )+
            /// A value that this build does not know; the text is kept as it came.
            Unknown(String),
        }

        impl $name {
            /// The words that this build knows, as they stand on the wire.
            pub const KNOWN: &'static [&'static str] = &[$($text),+];

            /// The word as it stands on the wire.
            pub fn as_str(&self) -> &str {
                match self {
                    $( Self::$variant => $text, )+
                    Self::Unknown(text) => text,
                }
            }

            /// Whether the word is none that this build knows.
            pub const fn is_unknown(&self) -> bool {
                matches!(self, Self::Unknown(_))
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                match text {
                    $( $text => Self::$variant, )+
                    other => Self::Unknown(other.to_owned()),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                // A number or an object in place of a word is one more unknown value.
                Ok(match serde_json::Value::deserialize(deserializer)? {
                    serde_json::Value::String(text) => Self::from(text.as_str()),
                    other => Self::Unknown(other.to_string()),
                })
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({
                    "description": concat!($($about),*).trim(),
                    "anyOf": [
                        $( { "const": $text, "description": concat!($($doc),*).trim() }, )+
                        { "type": "string", "description": "Any other word is skipped and counted." },
                    ],
                })
            }
        }
    };
}
pub(crate) use open_enum;

/// Declares the params of a method that is about a scope: JSON objects whose members stand beside
/// those of the scope, `session` and `agent`.
///
/// Written and described with serde's `flatten`, but not read with it: `flatten` puts the members
/// that it does not know into a buffer first, and these are read for every message.
macro_rules! scoped {
    (
        $(#[$about:meta])*
        pub struct $name:ident {
            $(#[doc = $whose:literal])*
            pub scope: Scope,
            $( $(#[$attribute:meta])* pub $member:ident: $type:ty, )*
        }
    ) => {
        $(#[$about])*
        #[derive(serde::Serialize, schemars::JsonSchema)]
        #[serde(rename_all = "camelCase")]
        pub struct $name {
            $(#[doc = $whose])*
            #[serde(flatten)]
            pub scope: Scope,
            $( $(#[$attribute])* pub $member: $type, )*
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                // The schema is derived only so that the members' attributes for it are known.
                #[derive(serde::Deserialize, schemars::JsonSchema)]
                #[serde(rename_all = "camelCase")]
                struct Flat {
                    session: String,
                    agent: Option<String>,
                    $( $(#[$attribute])* $member: $type, )*
                }
                let Flat { session, agent, $($member),* } = Flat::deserialize(deserializer)?;
                Ok(Self { scope: Scope { session, agent }, $($member),* })
            }
        }
    };
}
pub(crate) use scoped;
