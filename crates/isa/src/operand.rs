//! Where an instruction finds a value.

/// A register, an immediate, a constant: anything that an instruction reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Operand {
    /// Not there; reads as zero. SASS's `RZ` and `URZ` are this.
    #[default]
    None,
    /// A warp register. A 64-bit value sits in this one and the next. Registers of the
    /// uniform datapath are warp registers too, with one value in all lanes.
    Register(u16),
    /// A literal; 32-bit users take the low half.
    Immediate(u64),
    /// A word (or two) of a constant bank, at a byte offset.
    Constant {
        /// Bank number.
        bank: u8,
        /// Byte offset in the bank.
        offset: u32,
    },
}

/// An operand and what is done to it on the way in. What `negate` means (two's complement or
/// a flipped sign bit) depends on the type that the instruction reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Source {
    /// Where the value is.
    pub operand: Operand,
    /// Negated after `absolute`.
    pub negate: bool,
    /// Absolute value first (floating point).
    pub absolute: bool,
    /// Bitwise complement (integers).
    pub invert: bool,
    /// Which halves of a packed register an FP16 instruction takes.
    pub halves: Halves,
}

/// Signs and complements, written without a branch so that loops over lanes become vectors.
impl Source {
    /// A 32-bit integer: `invert`, then `negate` applied.
    #[must_use]
    #[inline(always)]
    pub fn of_integer(&self, word: u32) -> u32 {
        let [invert, negate] = [self.invert, self.negate].map(|on| u32::from(on).wrapping_neg());
        (word ^ invert ^ negate).wrapping_sub(negate)
    }

    /// A 32-bit float as bits: `absolute`, then `negate` applied.
    #[must_use]
    #[inline(always)]
    pub fn of_float(&self, word: u32) -> u32 {
        let [absolute, negate] = [self.absolute, self.negate].map(|on| u32::from(on) << 31);
        (word & !absolute) ^ negate
    }

    /// A 64-bit integer: `invert`, then `negate` applied.
    #[must_use]
    #[inline(always)]
    pub fn of_integer64(&self, value: u64) -> u64 {
        let [invert, negate] = [self.invert, self.negate].map(|on| u64::from(on).wrapping_neg());
        (value ^ invert ^ negate).wrapping_sub(negate)
    }

    /// A 64-bit float as bits: `absolute`, then `negate` applied.
    #[must_use]
    #[inline(always)]
    pub fn of_float64(&self, value: u64) -> u64 {
        const INFINITY: u64 = 0x7ff << 52;
        // What is not a number passes as it is.
        let number = u64::from(value << 1 <= INFINITY << 1);
        let [absolute, negate] =
            [self.absolute, self.negate].map(|on| (u64::from(on) & number) << 63);
        (value & !absolute) ^ negate
    }
}

/// How a packed pair of 16-bit values is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Halves {
    /// Low and high as they are.
    #[default]
    Both,
    /// The low half twice.
    Low,
    /// The high half twice.
    High,
    /// One 32-bit float, converted.
    Float32,
}

impl From<Operand> for Source {
    fn from(operand: Operand) -> Self {
        Self {
            operand,
            ..Self::default()
        }
    }
}

/// A predicate read as a lane mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PredicateOperand {
    /// The predicate register.
    pub register: PredicateRegister,
    /// Complemented.
    pub negate: bool,
}

/// Where a predicate lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum PredicateRegister {
    /// Always true (`PT`); a write to it is dropped.
    #[default]
    True,
    /// A predicate of the warp: one bit a lane.
    Lanes(u16),
}

impl PredicateOperand {
    /// Always true.
    pub const TRUE: Self = Self {
        register: PredicateRegister::True,
        negate: false,
    };

    /// Never true.
    pub const FALSE: Self = Self {
        register: PredicateRegister::True,
        negate: true,
    };

    /// What a register holds.
    #[must_use]
    pub fn of(register: PredicateRegister) -> Self {
        Self {
            register,
            negate: false,
        }
    }
}

impl Default for PredicateOperand {
    fn default() -> Self {
        Self::TRUE
    }
}
