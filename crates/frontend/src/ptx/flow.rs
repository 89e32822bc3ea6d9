//! The control-flow graph of a function: blocks, loops, dominators, post-dominators.

use lockstep_isa::instruction::Flow;

use super::ir::{Body, Code, Target};

/// Instructions that run one after the other.
#[derive(Clone, Debug)]
pub struct Block<'a> {
    /// The instructions; only the last one may jump.
    pub code: Vec<Code<'a>>,
    /// Block that follows if the last instruction does not jump.
    pub next: Option<usize>,
    /// Blocks that the last instruction may jump to.
    pub targets: Vec<usize>,
}

impl Block<'_> {
    /// All blocks that can come next.
    pub fn successors(&self) -> impl Iterator<Item = usize> + '_ {
        self.next.iter().chain(&self.targets).copied()
    }
}

/// A function as blocks.
#[derive(Clone, Debug)]
pub struct Graph<'a> {
    /// Blocks; the first one is the entry. Their order is the order in which they are laid out.
    pub blocks: Vec<Block<'a>>,
    /// Block of each jump table's labels.
    pub tables: Vec<Vec<usize>>,
}

/// Whether control never goes on to the next instruction.
pub fn ends(code: &Code<'_>) -> bool {
    code.unguarded()
        && matches!(
            code.flow(),
            Some(
                Flow::Branch { .. }
                    | Flow::BranchIndirect { .. }
                    | Flow::Exit
                    | Flow::Return { .. }
            )
        )
}

/// Whether control may go elsewhere than to the next instruction.
fn jumps(code: &Code<'_>) -> bool {
    matches!(
        code.flow(),
        Some(Flow::Branch { .. } | Flow::BranchIndirect { .. } | Flow::Exit | Flow::Return { .. })
    )
}

impl<'a> Graph<'a> {
    /// Cuts a body into blocks.
    pub fn new(body: &mut Body<'a>) -> Self {
        let code = std::mem::take(&mut body.code);
        let length = code.len();
        let mut starts = vec![false; length + 1];
        starts[0] = true;
        for label in &body.labels {
            if *label < length {
                starts[*label] = true;
            }
        }
        for (index, instruction) in code.iter().enumerate() {
            if jumps(instruction) {
                starts[index + 1] = true;
            }
        }
        let mut block_of = vec![0; length + 1];
        let mut blocks: Vec<Block<'a>> = Vec::new();
        for (index, instruction) in code.into_iter().enumerate() {
            if starts[index] {
                blocks.push(Block {
                    code: Vec::new(),
                    next: None,
                    targets: Vec::new(),
                });
            }
            let block = blocks.len() - 1;
            block_of[index] = block;
            blocks[block].code.push(instruction);
        }
        // The entry is a block of its own, so that it is never the head of a loop.
        blocks.insert(
            0,
            Block {
                code: Vec::new(),
                next: None,
                targets: Vec::new(),
            },
        );
        let count = blocks.len();
        blocks[0].next = (count > 1).then_some(1);
        let place = |label: u32| block_of[body.labels[label as usize].min(length)] + 1;
        for (index, block) in blocks.iter_mut().enumerate() {
            let Some(last) = block.code.last() else {
                continue;
            };
            block.targets = match (&last.target, last.flow()) {
                (Target::Label(label), Some(Flow::Branch { .. })) => vec![place(*label)],
                (Target::Table(table), _) => {
                    let mut targets: Vec<usize> =
                        body.tables[*table].iter().map(|l| place(*l)).collect();
                    targets.sort_unstable();
                    targets.dedup();
                    targets
                }
                _ => Vec::new(),
            };
            if !ends(last) && index + 1 < count {
                block.next = Some(index + 1);
            }
        }
        let tables = body
            .tables
            .iter()
            .map(|labels| labels.iter().map(|label| place(*label)).collect())
            .collect();
        Self { blocks, tables }
    }

    /// Predecessors of every block.
    pub fn predecessors(&self) -> Vec<Vec<usize>> {
        let mut predecessors = vec![Vec::new(); self.blocks.len()];
        for (index, block) in self.blocks.iter().enumerate() {
            for successor in block.successors() {
                if !predecessors[successor].contains(&index) {
                    predecessors[successor].push(index);
                }
            }
        }
        predecessors
    }

    /// Blocks reachable from `from` (these included) without entering `stop`.
    pub fn reachable(&self, from: impl Iterator<Item = usize>, stop: Option<usize>) -> Vec<bool> {
        let mut seen = vec![false; self.blocks.len()];
        let mut work: Vec<usize> = from.filter(|block| Some(*block) != stop).collect();
        while let Some(block) = work.pop() {
            if !std::mem::replace(&mut seen[block], true) {
                let next = self.blocks[block].successors();
                work.extend(next.filter(|next| Some(*next) != stop && !seen[*next]));
            }
        }
        seen
    }

    /// Immediate dominator of every block; none for the entry and for unreachable blocks.
    pub fn dominators(&self) -> Tree {
        let successors: Vec<Vec<usize>> = self
            .blocks
            .iter()
            .map(|b| b.successors().collect())
            .collect();
        let mut tree = Tree::new(self.blocks.len());
        if !self.blocks.is_empty() {
            tree.grow(0, &successors, &self.predecessors());
        }
        tree
    }

    /// Immediate post-dominator of every block, as lanes that go on see it: a path on which lanes
    /// end puts no condition on those that do not. The last place where lanes end comes first;
    /// blocks that cannot reach it are judged by the others, and endless loops by themselves.
    pub fn post_dominators(&self) -> Tree {
        let successors: Vec<Vec<usize>> = self
            .blocks
            .iter()
            .map(|b| b.successors().collect())
            .collect();
        let predecessors = self.predecessors();
        let mut tree = Tree::new(self.blocks.len());
        let sinks = (0..self.blocks.len())
            .rev()
            .filter(|block| successors[*block].is_empty());
        for root in sinks.chain((0..self.blocks.len()).rev()) {
            if !tree.known[root] {
                tree.grow(root, &predecessors, &successors);
            }
        }
        tree
    }

    /// Loops, outer ones before inner ones.
    pub fn loops(&self) -> Loops {
        let mut loops = Loops {
            all: Vec::new(),
            innermost: vec![None; self.blocks.len()],
        };
        // Sets of blocks to search, with the loop around them and the headers to leave out.
        let everything: Vec<usize> = (0..self.blocks.len()).collect();
        let mut work = vec![(everything, None)];
        let mut allowed = vec![usize::MAX; self.blocks.len()];
        let mut round = 0;
        while let Some((blocks, outer)) = work.pop() {
            round += 1;
            for block in &blocks {
                allowed[*block] = round;
            }
            for component in self.components(&blocks, &allowed, round) {
                let first = component[0];
                let cyclic = component.len() > 1
                    || self.blocks[first].successors().any(|next| next == first);
                if !cyclic {
                    continue;
                }
                let number = loops.all.len();
                let found = self.make_loop(component, outer);
                for block in &found.blocks {
                    loops.innermost[*block] = Some(number);
                }
                let inner: Vec<usize> = found
                    .blocks
                    .iter()
                    .copied()
                    .filter(|block| !found.headers.contains(block))
                    .collect();
                loops.all.push(found);
                work.push((inner, Some(number)));
            }
        }
        loops
    }

    fn make_loop(&self, mut blocks: Vec<usize>, outer: Option<usize>) -> Loop {
        blocks.sort_unstable();
        let mut headers = Vec::new();
        for (index, block) in self.blocks.iter().enumerate() {
            if blocks.binary_search(&index).is_err() {
                for next in block.successors() {
                    if blocks.binary_search(&next).is_ok() && !headers.contains(&next) {
                        headers.push(next);
                    }
                }
            }
        }
        if headers.is_empty() {
            // The entry of the function, or a loop that nothing reaches.
            headers.push(blocks[0]);
        }
        Loop {
            blocks,
            headers,
            outer,
        }
    }

    /// Strongly connected components among `blocks`, those marked `round` in `allowed`.
    /// Tarjan's algorithm with its own stack.
    fn components(&self, blocks: &[usize], allowed: &[usize], round: usize) -> Vec<Vec<usize>> {
        let mut index = vec![usize::MAX; self.blocks.len()];
        let mut low = vec![usize::MAX; self.blocks.len()];
        let mut on_stack = vec![false; self.blocks.len()];
        let mut stack = Vec::new();
        let mut found = Vec::new();
        let mut counter = 0;
        for start in blocks {
            if index[*start] != usize::MAX {
                continue;
            }
            let mut calls: Vec<(usize, Vec<usize>)> = Vec::new();
            let mut enter = Some(*start);
            loop {
                if let Some(block) = enter.take() {
                    index[block] = counter;
                    low[block] = counter;
                    counter += 1;
                    stack.push(block);
                    on_stack[block] = true;
                    let next = self.blocks[block].successors();
                    calls.push((block, next.filter(|next| allowed[*next] == round).collect()));
                }
                let Some((block, rest)) = calls.last_mut() else {
                    break;
                };
                let block = *block;
                if let Some(next) = rest.pop() {
                    if index[next] == usize::MAX {
                        enter = Some(next);
                    } else if on_stack[next] {
                        low[block] = low[block].min(index[next]);
                    }
                    continue;
                }
                calls.pop();
                if let Some((parent, _)) = calls.last() {
                    low[*parent] = low[*parent].min(low[block]);
                }
                if low[block] == index[block] {
                    let mut component = Vec::new();
                    while let Some(member) = stack.pop() {
                        on_stack[member] = false;
                        component.push(member);
                        if member == block {
                            break;
                        }
                    }
                    found.push(component);
                }
            }
        }
        found
    }
}

/// A cycle of blocks.
#[derive(Debug, PartialEq, Eq)]
pub struct Loop {
    /// Members, ascending.
    pub blocks: Vec<usize>,
    /// Members that are entered from outside.
    pub headers: Vec<usize>,
    /// The loop around it.
    pub outer: Option<usize>,
}

impl Loop {
    /// Whether a block is a member.
    pub fn contains(&self, block: usize) -> bool {
        self.blocks.binary_search(&block).is_ok()
    }
}

/// All loops of a function.
#[derive(Debug)]
pub struct Loops {
    /// Outer ones before inner ones.
    pub all: Vec<Loop>,
    /// Innermost loop of each block.
    pub innermost: Vec<Option<usize>>,
}

impl Loops {
    /// Loops around a block, innermost first.
    pub fn around(&self, block: usize) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(self.innermost[block], |inner| self.all[*inner].outer)
    }
}

/// A tree of (post-)dominators.
#[derive(Debug)]
pub struct Tree {
    parent: Vec<Option<usize>>,
    known: Vec<bool>,
    /// Order in which a block was finished; parents have larger numbers than their children.
    order: Vec<usize>,
}

impl Tree {
    fn new(count: usize) -> Self {
        Self {
            parent: vec![None; count],
            known: vec![false; count],
            order: vec![0; count],
        }
    }

    /// The block above, if any.
    pub fn above(&self, block: usize) -> Option<usize> {
        self.parent[block]
    }

    /// Whether `upper` is `block` or above it.
    pub fn covers(&self, upper: usize, block: usize) -> bool {
        std::iter::successors(Some(block), |block| self.parent[*block]).any(|b| b == upper)
    }

    /// Blocks above a block.
    pub fn depth(&self, block: usize) -> usize {
        std::iter::successors(self.parent[block], |block| self.parent[*block]).count()
    }

    /// Adds what `root` reaches along `forward` and no earlier root did. The iterative algorithm
    /// of Cooper, Harvey and Kennedy.
    fn grow(&mut self, root: usize, forward: &[Vec<usize>], backward: &[Vec<usize>]) {
        let mut postorder = Vec::new();
        let mut visited = self.known.clone();
        let mut stack = vec![(root, 0)];
        visited[root] = true;
        while let Some((block, next)) = stack.last_mut() {
            if let Some(successor) = forward[*block].get(*next) {
                *next += 1;
                if !visited[*successor] {
                    visited[*successor] = true;
                    stack.push((*successor, 0));
                }
            } else {
                postorder.push(*block);
                stack.pop();
            }
        }
        for (number, block) in postorder.iter().enumerate() {
            self.order[*block] = number;
        }
        let mut member = vec![false; forward.len()];
        for block in &postorder {
            member[*block] = true;
        }
        let mut up = vec![None; forward.len()];
        up[root] = Some(root);
        let mut changed = true;
        while changed {
            changed = false;
            for block in postorder.iter().rev().filter(|block| **block != root) {
                let mut best = None;
                for before in &backward[*block] {
                    if member[*before] && up[*before].is_some() {
                        best = Some(match best {
                            None => *before,
                            Some(other) => self.meet(&up, *before, other),
                        });
                    }
                }
                if up[*block] != best {
                    up[*block] = best;
                    changed = true;
                }
            }
        }
        for block in postorder {
            self.known[block] = true;
            self.parent[block] = up[block].filter(|_| block != root);
        }
    }

    fn meet(&self, up: &[Option<usize>], mut a: usize, mut b: usize) -> usize {
        while a != b {
            while self.order[a] < self.order[b] {
                a = up[a].unwrap_or(b);
            }
            while self.order[b] < self.order[a] {
                b = up[b].unwrap_or(a);
            }
        }
        a
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A graph from lists of successors.
    fn graph(edges: &[&[usize]]) -> Graph<'static> {
        Graph {
            blocks: edges
                .iter()
                .map(|targets| Block {
                    code: Vec::new(),
                    next: None,
                    targets: targets.to_vec(),
                })
                .collect(),
            tables: Vec::new(),
        }
    }

    #[test]
    fn a_diamond() {
        let graph = graph(&[&[1, 2], &[3], &[3], &[]]);
        assert_eq!(graph.post_dominators().above(0), Some(3));
        assert_eq!(graph.dominators().above(3), Some(0));
        assert!(graph.loops().all.is_empty());
    }

    #[test]
    fn an_early_end_puts_no_condition_on_the_rest() {
        // 0: if → 1 (ends) else 2; 2 → 3 (ends)
        let graph = graph(&[&[1, 2], &[], &[3], &[]]);
        let tree = graph.post_dominators();
        assert_eq!(tree.above(0), Some(2));
        assert_eq!(tree.above(1), None);
    }

    #[test]
    fn loops_nest() {
        // 0 → 1 → 2 → 2|3, 3 → 1|4
        let graph = graph(&[&[1], &[2], &[2, 3], &[1, 4], &[]]);
        let loops = graph.loops();
        assert_eq!(loops.all.len(), 2);
        assert_eq!(loops.all[0].blocks, [1, 2, 3]);
        assert_eq!(loops.all[0].headers, [1]);
        assert_eq!(loops.all[1].blocks, [2]);
        assert_eq!(loops.around(2).collect::<Vec<_>>(), [1, 0]);
        let tree = graph.post_dominators();
        assert_eq!((tree.above(2), tree.above(3)), (Some(3), Some(4)));
    }

    #[test]
    fn an_endless_loop_has_an_order_too() {
        let graph = graph(&[&[1, 2], &[3], &[3], &[0]]);
        assert_eq!(graph.post_dominators().above(0), Some(3));
        assert_eq!(graph.loops().all.len(), 1);
    }

    #[test]
    fn two_entries_make_two_headers() {
        let graph = graph(&[&[1, 2], &[2], &[1, 3], &[]]);
        assert_eq!(graph.loops().all[0].headers, [1, 2]);
    }
}
