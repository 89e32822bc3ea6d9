//! What every quantity shares: reading, printing and serialising through one [`Scale`].
//!
//! [`Scale`]: crate::text::Scale

/// Implements `FromStr`, `Display`, `Debug` and serde for a type that is read and printed.
///
/// The type has `fn read(&str) -> Result<Self, ParseError>`, `fn print(&self, &mut Formatter)`,
/// `fn raw(self) -> u64` and `fn from_raw(u64) -> Option<Self>`.
macro_rules! textual {
    ($name:ident, $what:literal) => {
        impl std::str::FromStr for $name {
            type Err = crate::ParseError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::read(text)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.print(f)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.print(f)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                if serializer.is_human_readable() {
                    serializer.collect_str(self)
                } else {
                    serializer.serialize_u64(self.raw())
                }
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;
                impl serde::de::Visitor<'_> for Text {
                    type Value = $name;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str($what)
                    }

                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$name, E> {
                        text.parse().map_err(E::custom)
                    }
                }
                if deserializer.is_human_readable() {
                    deserializer.deserialize_str(Text)
                } else {
                    let raw = u64::deserialize(deserializer)?;
                    $name::from_raw(raw)
                        .ok_or_else(|| serde::de::Error::custom(concat!("0 is not ", $what)))
                }
            }
        }
    };
}

/// [`textual!`] for a plain `u64` newtype whose text is a number and a unit of `$scale`.
macro_rules! scaled {
    ($name:ident, $scale:ident, $what:literal) => {
        impl $name {
            fn read(text: &str) -> Result<Self, crate::ParseError> {
                $scale.parse(text).map(Self)
            }

            fn print(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                $scale.print(self.0, f)
            }

            const fn raw(self) -> u64 {
                self.0
            }

            const fn from_raw(raw: u64) -> Option<Self> {
                Some(Self(raw))
            }
        }

        crate::quantity::textual!($name, $what);
    };
}

/// [`textual!`] for a rate, a `NonZero<u64>` newtype: a rate of zero is refused on entry, so that
/// dividing by one needs no check.
macro_rules! rate {
    ($name:ident, $scale:ident, $what:literal) => {
        impl $name {
            fn read(text: &str) -> Result<Self, crate::ParseError> {
                let raw = $scale.parse(text)?;
                Self::from_raw(raw).ok_or_else(|| crate::ParseError::Zero {
                    text: crate::text::quoted(text),
                    what: $scale.what,
                })
            }

            fn print(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                $scale.print(self.0.get(), f)
            }

            const fn raw(self) -> u64 {
                self.0.get()
            }

            const fn from_raw(raw: u64) -> Option<Self> {
                match std::num::NonZero::new(raw) {
                    Some(raw) => Some(Self(raw)),
                    None => None,
                }
            }
        }

        crate::quantity::textual!($name, $what);
    };
}

pub(crate) use {rate, scaled, textual};
