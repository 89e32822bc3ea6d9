//! Counts of single instructions, in words: which function, which text, which line of the source.

use super::Machine;
use lockstep_gpu::LineCounts;
use lockstep_isa::Module;
use lockstep_run_folder::LineRow;

/// Bytes of an instruction of machine code.
const NATIVE: u64 = 16;

impl Machine {
    /// What was issued by instruction, if that was asked for: module by module, in the order of code.
    pub fn lines(&self) -> Option<Vec<LineRow>> {
        let profile = self.options.profile.as_ref()?;
        let lines = profile.lines();
        let rows = lines.iter().filter_map(|((module, index), counts)| {
            let module = self.modules.get(usize::try_from(*module).ok()?)?;
            Some(row(module, *index, counts))
        });
        Some(rows.collect())
    }
}

fn row(module: &Module, index: u32, counts: &LineCounts) -> LineRow {
    let after = module
        .functions
        .partition_point(|(start, _)| *start <= index);
    let function = after.checked_sub(1).and_then(|at| module.functions.get(at));
    let (start, name) = function.map_or((0, ""), |(start, name)| (*start, name.as_str()));
    let place = index as usize;
    let unit = if module.native { NATIVE } else { 1 };
    let source = module.code.get(place);
    let source = source.and_then(|one| module.lines.get(one.scheduling.line as usize));
    let source = source.filter(|source| source.line > 0);
    LineRow {
        function: name.to_string(),
        offset: u64::from(index - start) * unit,
        instruction: module.text(index).unwrap_or_default().into_owned(),
        file: source.map(|source| source.file.clone()).unwrap_or_default(),
        line: source.map_or(0, |source| source.line),
        inlined_at: source
            .map(|source| source.inlined_at.clone())
            .unwrap_or_default(),
        issued: counts.issued,
        stalls: counts.stalls,
    }
}
