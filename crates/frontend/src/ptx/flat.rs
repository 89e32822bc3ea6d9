//! Blocks back to one list, in which jumps know their places.

use lockstep_isa::instruction::Flow;

use super::{
    flow::Graph,
    ir::{Code, Target},
};

/// A function as one list.
#[derive(Debug)]
pub struct Flat<'a> {
    /// All instructions.
    pub code: Vec<Code<'a>>,
    /// Place that each branch goes to.
    pub targets: Vec<Option<usize>>,
    /// Places of the labels of each jump table.
    pub tables: Vec<Vec<usize>>,
    /// First and last place (exclusive) and successors of every block.
    pub blocks: Vec<Span>,
}

/// A block of a [`Flat`].
#[derive(Debug)]
pub struct Span {
    /// First place.
    pub start: usize,
    /// Place after the last.
    pub end: usize,
    /// Blocks that can come next.
    pub successors: Vec<usize>,
}

impl<'a> Flat<'a> {
    /// Lays blocks out in their order, with a jump where one does not follow the other.
    pub fn new(graph: Graph<'a>) -> Self {
        let count = graph.blocks.len();
        let mut flat = Self {
            code: Vec::new(),
            targets: Vec::new(),
            tables: Vec::new(),
            blocks: Vec::with_capacity(count),
        };
        let mut jumps = Vec::new();
        for (index, block) in graph.blocks.into_iter().enumerate() {
            let start = flat.code.len();
            let successors = block.successors().collect();
            for code in block.code {
                if let (Target::Label(_), Some(Flow::Branch { .. })) = (&code.target, code.flow()) {
                    jumps.push((flat.code.len(), block.targets[0]));
                }
                flat.code.push(code);
            }
            if let Some(next) = block.next
                && next != index + 1
            {
                jumps.push((flat.code.len(), next));
                flat.code.push(Code::free(Flow::Branch { target: 0 }));
            }
            flat.blocks.push(Span {
                start,
                end: flat.code.len(),
                successors,
            });
        }
        flat.targets = vec![None; flat.code.len()];
        for (place, block) in jumps {
            flat.targets[place] = Some(flat.blocks[block].start);
        }
        flat.tables = graph
            .tables
            .iter()
            .map(|blocks| {
                blocks
                    .iter()
                    .map(|block| flat.blocks[*block].start)
                    .collect()
            })
            .collect();
        flat
    }
}
