//! Macros for the standard's objects, most of whose members are optional.

/// An object: its required members, optional members, and optional lists. Names are those of the standard in snake case.
macro_rules! object {
    (
        $(#[$doc:meta])*
        $name:ident {
            $($(#[$must_doc:meta])* $must:ident: $must_type:ty,)*
            $(;; $($(#[$may_doc:meta])* $may:ident: $may_type:ty,)*)?
            $([] $($(#[$list_doc:meta])* $list:ident: $list_type:ty,)*)?
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        pub struct $name {
            $($(#[$must_doc])* pub $must: $must_type,)*
            $($(
                $(#[$may_doc])*
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub $may: Option<$may_type>,
            )*)?
            $($(
                $(#[$list_doc])*
                #[serde(default, skip_serializing_if = "Vec::is_empty")]
                pub $list: Vec<$list_type>,
            )*)?
        }
    };
}

/// An enumeration encoded as a number, which may also come as a text that begins with it.
macro_rules! number {
    ($(#[$doc:meta])* $name:ident, $expected:literal { $($(#[$value_doc:meta])* $value:ident = $number:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$value_doc])* $value = $number,)*
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_u8(*self as u8)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                use serde::de::{Error as _, Unexpected};
                match super::Number::deserialize(deserializer)?.0 {
                    $($number => Ok(Self::$value),)*
                    other => Err(D::Error::invalid_value(Unexpected::Unsigned(other), &$expected)),
                }
            }
        }
    };
}

pub(super) use {number, object};
