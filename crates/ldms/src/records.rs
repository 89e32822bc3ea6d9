//! Records of a set: a row for each kernel of each context of each process, in a list that a store takes apart.
//!
//! They are there only if somebody asks (`records=<most>`): many stores drop lists.

use std::ffi::{CString, c_int};

use lockstep_counters::Metric;
use lockstep_exporter::Figures;

use crate::abi::{Opaque, RecordFunctions, value};

/// Bytes of the name of a kernel with its end; longer ones are cut.
const KERNEL_BYTES: usize = 256;
/// The most that somebody can ask for: sets are in memory that does not grow.
pub const MOST: usize = 4096;

/// How records are made.
pub struct Records {
    functions: RecordFunctions,
    /// At most so many in a set.
    pub most: usize,
    counters: Vec<&'static Metric>,
}

/// Where the records of a set are.
pub struct RecordList {
    list: c_int,
    definition: c_int,
    members: Members,
}

/// Places in a record.
struct Members {
    process: c_int,
    context: c_int,
    kernel: c_int,
    launches: c_int,
    counters: Vec<c_int>,
}

impl Records {
    /// Reads `records=<most>`, and finds what LDMS has for them.
    pub fn parse(text: &str, counters: Vec<&'static Metric>) -> Result<Self, String> {
        let most: usize = text.parse().unwrap_or(0);
        if !(1..=MOST).contains(&most) {
            return Err(format!(
                "records={text}: a number from 1 to {MOST} is needed, or none for sets without records"
            ));
        }
        let functions = RecordFunctions::find()?;
        Ok(Self {
            functions,
            most,
            counters,
        })
    }

    /// Adds the list to a schema; nothing if LDMS cannot.
    ///
    /// # Safety
    ///
    /// `schema` was made by LDMS.
    pub unsafe fn add_to(&self, schema: Opaque) -> Option<RecordList> {
        let functions = &self.functions;
        // SAFETY: the caller's promise, and texts that end in 0 and outlive the calls.
        unsafe {
            let record = (functions.ldms_record_create)(c"kernel".as_ptr());
            if record.is_null() {
                return None;
            }
            let member = |name: &str, unit: &str, kind, length| {
                let (name, unit) = (CString::new(name), CString::new(unit));
                let (name, unit) = (name.unwrap_or_default(), unit.unwrap_or_default());
                (functions.ldms_record_metric_add)(
                    record,
                    name.as_ptr(),
                    unit.as_ptr(),
                    kind,
                    length,
                )
            };
            let members = Members {
                process: member("process", "", value::U64, 1),
                context: member("context", "", value::U64, 1),
                kernel: member("kernel", "", value::CHAR_ARRAY, KERNEL_BYTES),
                launches: member("launches", "launches", value::U64, 1),
                counters: self
                    .counters
                    .iter()
                    .map(|metric| member(metric.name, metric.unit, value::U64, 1))
                    .collect(),
            };
            let heap = (functions.ldms_record_heap_size_get)(record) * self.most;
            let definition = (functions.ldms_schema_record_add)(schema, record);
            let list = (functions.ldms_schema_metric_list_add)(
                schema,
                c"kernels".as_ptr(),
                c"".as_ptr(),
                u32::try_from(heap).ok()?,
            );
            let places = [list, definition, members.process, members.context];
            let more = [members.kernel, members.launches];
            let places = places.into_iter().chain(more);
            let mut places = places.chain(members.counters.iter().copied());
            places.all(|place| place >= 0).then_some(RecordList {
                list,
                definition,
                members,
            })
        }
    }

    /// Fills the list of a set with what is known of a GPU.
    ///
    /// # Safety
    ///
    /// `set` was made of a schema that has `list`.
    pub unsafe fn fill(&self, set: Opaque, list: &RecordList, uuid: &str, figures: &Figures) {
        let functions = &self.functions;
        let members = &list.members;
        // SAFETY: the caller's promise; texts end in 0, and what is null is not used.
        unsafe {
            let head = (functions.ldms_metric_get)(set, list.list);
            if head.is_null() {
                return;
            }
            (functions.ldms_list_purge)(set, head);
            let ours = figures.details.iter().filter(|(key, _)| key.gpu == uuid);
            for (key, counts) in ours.take(self.most) {
                let record = (functions.ldms_record_alloc)(set, list.definition);
                // The set is full.
                if record.is_null() {
                    return;
                }
                let number = |place, count| (functions.ldms_record_set_u64)(record, place, count);
                number(members.process, key.process.into());
                number(members.context, key.context.into());
                let kernel = cut(&key.kernel);
                (functions.ldms_record_array_set_str)(record, members.kernel, kernel.as_ptr());
                number(members.launches, counts.launches);
                for (metric, place) in self.counters.iter().zip(&members.counters) {
                    let count = counts.counters.get(metric.name);
                    number(*place, count.copied().unwrap_or(0));
                }
                (functions.ldms_list_append_record)(set, head, record);
            }
        }
    }
}

/// A name that fits, cut between two characters.
fn cut(name: &str) -> CString {
    let mut end = name.len().min(KERNEL_BYTES - 1);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    CString::new(name[..end].replace('\0', " ")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut_between_characters() {
        assert_eq!(cut("short").as_bytes(), b"short");
        let long = "é".repeat(KERNEL_BYTES);
        let cut = cut(&long);
        assert_eq!(cut.as_bytes().len(), KERNEL_BYTES - 2);
        assert!(cut.to_str().is_ok());
    }

    #[test]
    fn a_number_of_records_that_no_set_holds_is_refused() {
        for text in ["", "0", "-1", "many", "4097"] {
            let refused = Records::parse(text, Vec::new()).err().unwrap();
            assert!(refused.contains("from 1 to 4096"), "{refused}");
        }
    }
}
