//! One router: input queues, outputs that a packet holds from its first flit to its last.
//!
//! Modelled: round-robin arbitration for each output, wormhole switching, places that are taken as the
//! router before knows them (its credits). Left out: virtual channels, pipeline stages of their own.
//!
//! Start reading at [`Router::arbitrate`].

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// Nobody, for inputs and outputs.
pub const NONE: u16 = u16::MAX;

/// A part of a packet that crosses a port in one cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flit {
    /// Packet, by its place in the network.
    pub packet: u32,
    /// Cycle from which it can leave the router.
    pub ready: u64,
    /// The first of its packet.
    pub head: bool,
    /// The last of its packet.
    pub tail: bool,
}

/// Where an output leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Over the edge.
    Nowhere,
    /// To an input of another router.
    Router(u32, u16),
    /// To whom packets are for.
    Sink,
}

/// A queue of flits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// Flits, the first to leave in front.
    pub flits: VecDeque<Flit>,
    /// Places that are taken, as the router before it knows.
    pub taken: u32,
    /// The output that its packet holds, or [`NONE`].
    pub output: u16,
}

/// A way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// The input whose packet holds it, or [`NONE`].
    pub input: u16,
    /// The input whose turn it is.
    pub turn: u16,
}

/// One router.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Router {
    /// Ways in.
    pub inputs: Vec<Input>,
    /// Ways out.
    pub outputs: Vec<Output>,
    /// Flits in all its queues.
    pub flits: u32,
}

impl Router {
    /// An empty router.
    pub fn new(inputs: usize, outputs: usize) -> Self {
        let input = Input {
            output: NONE,
            ..Input::default()
        };
        let output = Output {
            input: NONE,
            turn: 0,
        };
        Self {
            inputs: vec![input; inputs],
            outputs: vec![output; outputs],
            flits: 0,
        }
    }

    /// Who may use each output in this cycle, if it leads on: the packet that holds it, else the
    /// next one in turn whose first flit wants it.
    pub fn arbitrate(&self, cycle: u64, wanted: impl Fn(u32) -> u16, chosen: &mut Vec<u16>) {
        chosen.clear();
        chosen.resize(self.outputs.len(), NONE);
        let count = self.inputs.len() as u16;
        for (index, input) in self.inputs.iter().enumerate() {
            let Some(flit) = input.flits.front().filter(|flit| flit.ready <= cycle) else {
                continue;
            };
            let index = index as u16;
            if input.output != NONE {
                chosen[usize::from(input.output)] = index;
                continue;
            }
            let wants = usize::from(wanted(flit.packet));
            let output = &self.outputs[wants];
            if output.input != NONE {
                continue;
            }
            let distance = |input: u16| (input + count - output.turn) % count;
            let best = &mut chosen[wants];
            if *best == NONE || distance(index) < distance(*best) {
                *best = index;
            }
        }
    }

    /// Takes the first flit of an input out through an output.
    pub fn pass(&mut self, input: u16, output: u16) -> Option<Flit> {
        let inputs = self.inputs.len() as u16;
        let from = &mut self.inputs[usize::from(input)];
        let flit = from.flits.pop_front()?;
        self.flits -= 1;
        let through = &mut self.outputs[usize::from(output)];
        if flit.head {
            through.turn = (input + 1) % inputs;
        }
        (from.output, through.input) = if flit.tail {
            (NONE, NONE)
        } else {
            (output, input)
        };
        Some(flit)
    }
}
