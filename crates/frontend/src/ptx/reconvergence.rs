//! Reconvergence: where the lanes of a divergent branch go on as one again.
//!
//! A branch that may diverge gets a convergence barrier: set before the branch, or before the
//! outermost loop that leads from the branch back to itself, and waited for at its immediate
//! post-dominator, the reconvergence point.
//!
//! A loop that ends when another thread lets it (a lock, a flag) must not keep the lanes that
//! leave it waiting for those that stay: the lane that has the lock could never release it.
//! Branches whose lanes would wait across such a loop get no barrier; the loop yields at its end,
//! and so does the point where the lanes would have reconverged, where those that arrive together
//! join.
//!
//! The same holds for branches around a call of the function itself.
//!
//! `*.sync` instructions are preceded by a synchronisation of their lanes where these may have
//! diverged.

use lockstep_isa::{Operand, instruction::Flow};

use super::{
    divergence::Divergence,
    flow::{Block, Graph, Loops, Tree},
    ir::{Body, Code, Target, Uniformity},
};

/// Where a barrier is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    /// Before the last instruction of this block.
    Branch(usize),
    /// On the edges into this loop.
    Loop(usize),
}

/// One barrier.
#[derive(Clone, Copy, Debug)]
struct Region {
    start: Start,
    /// Block at whose beginning the lanes wait.
    reconvergence_point: usize,
}

/// Inserts barriers, gives their number.
pub fn insert(body: &Body<'_>, graph: &mut Graph<'_>, is_kernel: bool) -> u16 {
    let after = graph.post_dominators();
    let everything = vec![true; graph.blocks.len()];
    let lanes = Divergence::follow(body, graph, &after, &everything, |code| {
        code.uniformity == Uniformity::Divergent
    });
    let loops = graph.loops();
    let spins = spinning(body, graph, &after, &loops);
    let plan = plan(graph, &after, &loops, &spins, &lanes);
    let mut diverged = may_have_diverged(graph, &after, &lanes, &plan);
    if !is_kernel {
        // Nobody knows which lanes a caller brings.
        diverged.fill(true);
    }
    add_synchronisations(graph, &diverged);
    add_yields(graph, &loops, &spins, &plan.soft);
    add_barriers(graph, &loops, &plan.regions);
    plan.regions.len() as u16
}

/// Loops that end when another thread lets them.
fn spinning(body: &Body<'_>, graph: &Graph<'_>, after: &Tree, loops: &Loops) -> Vec<bool> {
    loops
        .all
        .iter()
        .map(|found| {
            let asks = |block: &usize| graph.blocks[*block].code.iter().any(|c| c.communicates);
            if !found.blocks.iter().any(asks) {
                return false;
            }
            let mut within = vec![false; graph.blocks.len()];
            for block in &found.blocks {
                within[*block] = true;
            }
            let answers = Divergence::follow(body, graph, after, &within, |code| code.communicates);
            found.blocks.iter().any(|block| {
                let mut next = graph.blocks[*block].successors();
                answers.branches[*block] && next.any(|next| !found.contains(next))
            })
        })
        .collect()
}

struct Plan {
    regions: Vec<Region>,
    /// Divergent branches without a barrier.
    free: Vec<usize>,
    /// Blocks where lanes of such branches would have reconverged.
    soft: Vec<usize>,
}

fn plan(
    graph: &Graph<'_>,
    after: &Tree,
    loops: &Loops,
    spins: &[bool],
    lanes: &Divergence,
) -> Plan {
    let before = graph.dominators();
    let mut plan = Plan {
        regions: Vec::new(),
        free: Vec::new(),
        soft: Vec::new(),
    };
    let mut branches: Vec<usize> = (0..graph.blocks.len())
        .filter(|block| lanes.branches[*block])
        .collect();
    // Outer branches first, so that inner ones with the same end find their barrier.
    branches.sort_by_cached_key(|block| (before.depth(*block), *block));
    for block in branches {
        let Some(reconvergence_point) = after.above(block) else {
            plan.free.push(block);
            continue;
        };
        let sides = graph.blocks[block]
            .successors()
            .filter(|next| after.covers(reconvergence_point, *next));
        if sides.count() < 2 {
            // All other paths end: no lane is missing at the reconvergence point.
            plan.free.push(block);
            continue;
        }
        let region = graph.reachable(graph.blocks[block].successors(), Some(reconvergence_point));
        let crosses = |found: usize| {
            spins[found]
                && !loops.all[found].contains(reconvergence_point)
                && loops.all[found].blocks.iter().any(|member| region[*member])
        };
        // A barrier belongs to a function, not to one of its frames: lanes that wait for it while
        // others are deeper in a recursion could wait for each other.
        let reenters = (0..graph.blocks.len())
            .any(|b| region[b] && graph.blocks[b].code.iter().any(|code| code.reenters));
        if reenters || (0..loops.all.len()).any(crosses) {
            plan.free.push(block);
            if !plan.soft.contains(&reconvergence_point) {
                plan.soft.push(reconvergence_point);
            }
            continue;
        }
        if only_ends(&graph.blocks[reconvergence_point]) {
            plan.free.push(block);
            continue;
        }
        let outermost = loops
            .around(block)
            .filter(|around| !loops.all[*around].contains(reconvergence_point))
            .last();
        let start = match outermost {
            Some(found) => Start::Loop(found),
            None => Start::Branch(block),
        };
        if !covered(
            &plan.regions,
            &before,
            loops,
            block,
            start,
            reconvergence_point,
        ) {
            plan.regions.push(Region {
                start,
                reconvergence_point,
            });
        }
    }
    plan
}

/// Nothing is gained by meeting just to end.
fn only_ends(block: &Block<'_>) -> bool {
    block.code.len() == 1 && block.code[0].flow() == Some(Flow::Exit)
}

/// Whether a barrier that is already there serves this branch too.
fn covered(
    regions: &[Region],
    before: &Tree,
    loops: &Loops,
    block: usize,
    start: Start,
    reconvergence_point: usize,
) -> bool {
    regions.iter().any(|region| {
        if region.reconvergence_point != reconvergence_point {
            return false;
        }
        if region.start == start {
            return true;
        }
        let Start::Branch(other) = region.start else {
            return match region.start {
                Start::Loop(found) => loops.all[found].contains(block),
                Start::Branch(_) => false,
            };
        };
        // Lanes come here through the other branch, and not again past the meeting.
        before.covers(other, block)
            && loops
                .around(block)
                .filter(|around| loops.all[*around].contains(reconvergence_point))
                .all(|around| loops.all[around].contains(other))
    })
}

/// Blocks where the lanes of a warp may have diverged: from a branch to its reconvergence point, and after a
/// call, from which lanes may come back one by one.
fn may_have_diverged(
    graph: &Graph<'_>,
    after: &Tree,
    lanes: &Divergence,
    plan: &Plan,
) -> Vec<bool> {
    let calls = |code: &Code<'_>| {
        matches!(
            code.flow(),
            Some(Flow::Call { .. } | Flow::CallIndirect { .. })
        )
    };
    let called = (0..graph.blocks.len()).filter(|b| graph.blocks[*b].code.iter().any(calls));
    let mut diverged = graph.reachable(called, None);
    for (index, block) in graph.blocks.iter().enumerate() {
        if lanes.branches[index] {
            let stop = if plan.free.contains(&index) {
                None
            } else {
                after.above(index)
            };
            let region = graph.reachable(block.successors(), stop);
            for (diverged, reached) in diverged.iter_mut().zip(region) {
                *diverged |= reached;
            }
        }
    }
    diverged
}

fn add_synchronisations(graph: &mut Graph<'_>, diverged: &[bool]) {
    for (block, diverged) in graph.blocks.iter_mut().zip(diverged) {
        if !*diverged || block.code.iter().all(|code| code.converged_lanes.is_none()) {
            continue;
        }
        for code in std::mem::take(&mut block.code) {
            if let Some(mask) = code.converged_lanes {
                let mut sync = Code::free(Flow::WarpSync);
                sync.instruction.sources[0] = match mask {
                    Operand::Register(local) => {
                        let used = code.uses[usize::from(local)];
                        sync.read(used.place, 1).into()
                    }
                    other => other.into(),
                };
                // What follows is executed together; see `Flow::WarpSync`.
                sync.instruction.sources[1] = Operand::Immediate(1).into();
                sync.line = code.line;
                block.code.push(sync);
            }
            block.code.push(code);
        }
    }
}

fn add_yields(graph: &mut Graph<'_>, loops: &Loops, spins: &[bool], soft: &[usize]) {
    for (found, _) in loops.all.iter().zip(spins).filter(|(_, spins)| **spins) {
        for block in &found.blocks {
            let returns = |next: usize| found.headers.contains(&next);
            if graph.blocks[*block].successors().any(returns) {
                insert_before_jump(&mut graph.blocks[*block], Code::free(Flow::Yield));
            }
        }
    }
    for block in soft {
        graph.blocks[*block].code.insert(0, Code::free(Flow::Yield));
    }
}

fn insert_before_jump<'a>(block: &mut Block<'a>, code: Code<'a>) {
    let jumps = block.code.last().is_some_and(|last| {
        matches!(
            last.flow(),
            Some(
                Flow::Branch { .. }
                    | Flow::BranchIndirect { .. }
                    | Flow::Exit
                    | Flow::Return { .. }
            )
        )
    });
    let place = block.code.len() - usize::from(jumps);
    block.code.insert(place, code);
}

fn add_barriers(graph: &mut Graph<'_>, loops: &Loops, regions: &[Region]) {
    let before = graph.dominators();
    let depth = |region: &Region| match region.start {
        Start::Branch(block) => before.depth(block),
        Start::Loop(found) => before.depth(loops.all[found].headers[0]),
    };
    // Waits: the barrier set last is waited for first. Inserting at the front reverses.
    let mut order: Vec<usize> = (0..regions.len()).collect();
    order.sort_by_cached_key(|index| depth(&regions[*index]));
    for index in &order {
        let wait = Code::free(Flow::ConvergeWait {
            barrier: *index as u16,
        });
        graph.blocks[regions[*index].reconvergence_point]
            .code
            .insert(0, wait);
    }
    for index in order {
        let set = Code::free(Flow::ConvergeSet {
            barrier: index as u16,
        });
        match regions[index].start {
            Start::Branch(block) => insert_before_jump(&mut graph.blocks[block], set),
            Start::Loop(found) => set_on_entry(graph, &loops.all[found], set),
        }
    }
}

/// Puts an instruction on every edge into a loop, in a block of its own for each header.
fn set_on_entry<'a>(graph: &mut Graph<'a>, found: &super::flow::Loop, set: Code<'a>) {
    for header in &found.headers {
        let entry = graph.blocks.len();
        graph.blocks.push(Block {
            code: vec![set.clone()],
            next: Some(*header),
            targets: Vec::new(),
        });
        let redirect = |place: &mut usize| {
            if place == header {
                *place = entry;
            }
        };
        for index in 0..entry {
            if found.contains(index) {
                continue;
            }
            let block = &mut graph.blocks[index];
            if let Some(next) = &mut block.next {
                redirect(next);
            }
            block.targets.iter_mut().for_each(redirect);
            if let Some(Target::Table(table)) = block.code.last().map(|last| last.target.clone()) {
                graph.tables[table].iter_mut().for_each(redirect);
            }
        }
    }
}
