//! Who calls whom, read from the tree before anything is lowered.

use super::{
    image::{ModuleName, Symbols},
    lower::stack::is_stack_opcode,
    syntax::{InitialValue, Operand, Program, Statement},
};

/// The call graph, by index of function in the program.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// Functions that each one may call, ascending.
    pub(super) callees: Vec<Vec<usize>>,
    /// Groups of functions that may call each other, callers' groups first.
    pub(super) groups: Vec<Vec<usize>>,
    /// Group of each function.
    group: Vec<usize>,
    /// Functions whose address a program can hold.
    addressed: Vec<bool>,
    /// Functions that take room on the stack themselves.
    moves_stack: Vec<bool>,
}

impl Calls {
    pub(super) fn new(program: &Program<'_>, symbols: &Symbols<'_, '_>) -> Self {
        let count = program.functions.len();
        let mut addressed = vec![false; count];
        let mut direct = vec![Vec::new(); count];
        let mut any = vec![false; count];
        let mut moves_stack = vec![false; count];
        for variable in &program.variables {
            for initial in &variable.initial {
                if let InitialValue::Address { name, .. } = initial.value
                    && let Some(ModuleName::Function(index)) = symbols.find(name)
                {
                    addressed[index] = true;
                }
            }
        }
        for (index, function) in program.functions.iter().enumerate() {
            let mut found = Found {
                symbols,
                direct: &mut direct[index],
                any: &mut any[index],
                moves_stack: &mut moves_stack[index],
                addressed: &mut addressed,
            };
            found.scan(function.body.as_deref().unwrap_or(&[]));
        }
        for (list, any) in direct.iter_mut().zip(&any) {
            if *any {
                list.extend((0..count).filter(|index| addressed[*index]));
            }
            list.retain(|callee| program.functions[*callee].body.is_some());
            list.sort_unstable();
            list.dedup();
        }
        let mut calls = Self {
            groups: components(&direct),
            callees: direct,
            group: vec![0; count],
            addressed,
            moves_stack,
        };
        calls.groups.reverse();
        for (number, group) in calls.groups.iter().enumerate() {
            for function in group {
                calls.group[*function] = number;
            }
        }
        calls
    }

    /// Whether a call of `callee` by `caller` may come back to the caller before it returns.
    pub(super) fn recursive(&self, caller: usize, callee: usize) -> bool {
        self.group[caller] == self.group[callee] && self.is_recursive(caller)
    }

    /// As [`Self::recursive`], through a register.
    pub(super) fn recursive_anywhere(&self, caller: usize) -> bool {
        (0..self.group.len()).any(|callee| self.addressed[callee] && self.recursive(caller, callee))
    }

    /// Whether a function may end up in a recursive one, or in one that takes room on the stack itself.
    pub(super) fn needs_stack(&self, function: usize) -> bool {
        let mut seen = vec![false; self.group.len()];
        let mut work = vec![function];
        while let Some(function) = work.pop() {
            if !std::mem::replace(&mut seen[function], true) {
                if self.is_recursive(function) || self.moves_stack(function) {
                    return true;
                }
                work.extend(&self.callees[function]);
            }
        }
        false
    }

    /// Whether a function takes room on the stack itself.
    pub(super) fn moves_stack(&self, function: usize) -> bool {
        self.moves_stack[function]
    }

    /// Whether a function may be entered again before it returns.
    pub(super) fn is_recursive(&self, function: usize) -> bool {
        self.groups[self.group[function]].len() > 1 || self.callees[function].contains(&function)
    }
}

struct Found<'f, 'p, 'a> {
    symbols: &'f Symbols<'p, 'a>,
    direct: &'f mut Vec<usize>,
    any: &'f mut bool,
    moves_stack: &'f mut bool,
    addressed: &'f mut [bool],
}

impl Found<'_, '_, '_> {
    fn scan(&mut self, statements: &[Statement<'_>]) {
        for statement in statements {
            match statement {
                Statement::Block(inner) => self.scan(inner),
                Statement::Instruction(i) if i.opcode == "call" => {
                    let callee = i.operands.iter().find_map(|operand| match operand {
                        Operand::Name(name) => Some(*name),
                        _ => None,
                    });
                    match callee.and_then(|name| self.symbols.find(name)) {
                        Some(ModuleName::Function(index)) => self.direct.push(index),
                        _ => *self.any = true,
                    }
                }
                Statement::Instruction(i) => {
                    *self.moves_stack |= is_stack_opcode(i.opcode);
                    i.operands.iter().for_each(|o| self.operand(o));
                }
                _ => {}
            }
        }
    }

    fn operand(&mut self, operand: &Operand<'_>) {
        match operand {
            Operand::Name(name) => {
                if let Some(ModuleName::Function(index)) = self.symbols.find(name) {
                    self.addressed[index] = true;
                }
            }
            Operand::Vector(list) | Operand::List(list) => {
                list.iter().for_each(|o| self.operand(o));
            }
            _ => {}
        }
    }
}

/// Strongly connected components, callees' before callers'. Tarjan's algorithm, own stack.
fn components(edges: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let count = edges.len();
    let mut index = vec![usize::MAX; count];
    let mut low = vec![0; count];
    let mut on_stack = vec![false; count];
    let mut stack = Vec::new();
    let mut found = Vec::new();
    let mut counter = 0;
    for start in 0..count {
        if index[start] != usize::MAX {
            continue;
        }
        let mut work = vec![(start, 0)];
        while let Some((node, next)) = work.last_mut() {
            let node = *node;
            if *next == 0 {
                index[node] = counter;
                low[node] = counter;
                counter += 1;
                stack.push(node);
                on_stack[node] = true;
            }
            if let Some(callee) = edges[node].get(*next).copied() {
                *next += 1;
                if index[callee] == usize::MAX {
                    work.push((callee, 0));
                } else if on_stack[callee] {
                    low[node] = low[node].min(index[callee]);
                }
                continue;
            }
            // A node without callees never advances `next`; leave it all the same.
            work.pop();
            if let Some((parent, _)) = work.last() {
                low[*parent] = low[*parent].min(low[node]);
            }
            if low[node] == index[node] {
                let mut group = Vec::new();
                while let Some(member) = stack.pop() {
                    on_stack[member] = false;
                    group.push(member);
                    if member == node {
                        break;
                    }
                }
                found.push(group);
            }
        }
    }
    found
}
