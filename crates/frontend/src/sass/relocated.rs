//! Contents of a file with relocations applied, as far as they change them.
//!
//! The file itself stays as it is: modules of several contexts share it.

use std::collections::BTreeMap;

use lockstep_isa::sass::{Word, word::WORD_BYTES};

use super::{
    code::Text,
    cubin::{Cubin, Relocation},
    error::Error,
    relocation::{self, Action, Part},
};

/// Beginnings of names of the sections that are loaded.
const LOADED: [&str; 3] = [".text.", ".nv.constant", ".nv.global"];

/// What relocations change.
#[derive(Debug)]
pub(super) struct Relocated<'a> {
    cubin: &'a Cubin,
    /// Sections of data, whole.
    data: BTreeMap<usize, Vec<u8>>,
    /// Words of code by their index in the module.
    pub words: BTreeMap<u32, Word>,
}

impl<'a> Relocated<'a> {
    /// Applies the relocations of a file. `texts` are its text sections by number, `address` says where a symbol is.
    ///
    /// # Errors
    /// If a relocation is unknown or lies outside its section, or a symbol has no address.
    pub(super) fn new(
        cubin: &'a Cubin,
        texts: &BTreeMap<usize, Text>,
        address: impl Fn(usize) -> Result<u64, Error>,
    ) -> Result<Self, Error> {
        let mut relocated = Self {
            cubin,
            data: BTreeMap::new(),
            words: BTreeMap::new(),
        };
        for relocation in &cubin.relocations {
            let section = &cubin.sections[relocation.section];
            if !LOADED.iter().any(|prefix| section.name.starts_with(prefix)) {
                continue;
            }
            let unknown = || Error::UnknownRelocation {
                section: section.name.clone(),
                offset: relocation.offset,
                kind: relocation.kind,
                symbol: cubin.symbols[relocation.symbol].name.clone(),
            };
            let kind = relocation::kind(relocation.kind).ok_or_else(unknown)?;
            let Action::Address(size, parts) = kind.action else {
                continue;
            };
            let value = address(relocation.symbol)?;
            let start = usize::try_from(relocation.offset).map_err(|_| unknown())?;
            let end = start
                .checked_add(usize::from(size))
                .filter(|end| *end <= section.bytes.len());
            let end = end.ok_or_else(unknown)?;
            match texts.get(&relocation.section) {
                Some(text) => relocated.patch_words(*text, start..end, parts, value, relocation),
                None => {
                    let bytes = relocated
                        .data
                        .entry(relocation.section)
                        .or_insert_with(|| section.bytes.clone());
                    relocation::patch(parts, &mut bytes[start..end], value, relocation.addend);
                }
            }
        }
        Ok(relocated)
    }

    /// Content of a section of data.
    pub(super) fn bytes(&self, section: usize) -> &[u8] {
        match self.data.get(&section) {
            Some(bytes) => bytes,
            None => &self.cubin.sections[section].bytes,
        }
    }

    /// Patches bytes of a text section: of one word, or of two where they lie across.
    fn patch_words(
        &mut self,
        text: Text,
        place: std::ops::Range<usize>,
        parts: &[Part],
        value: u64,
        relocation: &Relocation,
    ) {
        const BYTES: usize = WORD_BYTES as usize;
        let first = place.start / BYTES;
        let mut bytes = [0; 2 * BYTES];
        for (half, number) in bytes.chunks_exact_mut(BYTES).zip(first..) {
            let original = self.cubin.sections[text.section]
                .bytes
                .get(number * BYTES..);
            match self.words.get(&(text.start + number as u32)) {
                Some(word) if number < text.length as usize => {
                    half.copy_from_slice(&word.0.to_le_bytes());
                }
                _ => half
                    .iter_mut()
                    .zip(original.unwrap_or_default())
                    .for_each(|(to, from)| *to = *from),
            }
        }
        let inside = place.start % BYTES..place.end - first * BYTES;
        relocation::patch(parts, &mut bytes[inside], value, relocation.addend);
        for (half, number) in bytes.chunks_exact(BYTES).zip(first..) {
            // What is left behind the last whole word is no instruction.
            if number < text.length as usize
                && number * BYTES < place.end
                && let Some(word) = Word::from_bytes(half)
            {
                self.words.insert(text.start + number as u32, word);
            }
        }
    }
}
