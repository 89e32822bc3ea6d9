//! Records of the ring and identities of the name table, in memory and in bytes.

use super::layout::{self, MOST_VALUES, identity, slot};

/// What a record tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum RecordKind {
    /// One kernel launch ran from `begin` to `end`; values are its counters, if they were counted.
    Launch = 1,
    /// The device's counters grew by the values between `begin` and `end`. If it is exact, the kernel
    /// that it names did all of it, which only a simulated GPU knows.
    DeviceSample = 2,
    /// Gauges of a device at `end`.
    Gauges = 3,
    /// The process's own host side at `end`.
    Host = 4,
    /// Launches of a stream up to `launch` were over at `end`, and not all of them at `begin`.
    Progress = 5,
}

impl RecordKind {
    fn from_number(number: u32) -> Option<Self> {
        Some(match number {
            1 => Self::Launch,
            2 => Self::DeviceSample,
            3 => Self::Gauges,
            4 => Self::Host,
            5 => Self::Progress,
            _ => return None,
        })
    }
}

/// No device, context or kernel.
pub const NO_IDENTITY: u32 = u32::MAX;

/// One record of the ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Launch, sample, mark or gauges.
    pub kind: RecordKind,
    /// Counted by hardware for exactly this launch, not divided up afterwards.
    pub exact: bool,
    /// `begin` and `end` are the device's own; otherwise a launch has only its host time.
    pub timed: bool,
    /// Identity of the device.
    pub device: u32,
    /// Identity of the context.
    pub context: u32,
    /// The driver's number of the stream.
    pub stream: u32,
    /// Identity of the kernel.
    pub kernel: u32,
    /// Nanoseconds since 1970.
    pub begin: u64,
    /// Nanoseconds since 1970.
    pub end: u64,
    /// Number of the launch in its process.
    pub launch: u64,
    /// Blocks in x, y and z.
    pub grid: [u32; 3],
    /// Threads in x, y and z.
    pub block: [u32; 3],
    /// Which of the values were read: bit i for value i.
    pub present: u16,
    /// Counters in the order of the metadata file, or gauges in the order of the registry.
    pub values: [u64; MOST_VALUES],
}

impl Record {
    /// A record of `kind` that tells nothing yet.
    pub const fn new(kind: RecordKind) -> Self {
        Self {
            kind,
            exact: false,
            timed: false,
            device: NO_IDENTITY,
            context: NO_IDENTITY,
            stream: 0,
            kernel: NO_IDENTITY,
            begin: 0,
            end: 0,
            launch: 0,
            grid: [0; 3],
            block: [0; 3],
            present: 0,
            values: [0; MOST_VALUES],
        }
    }

    /// Value `index`, if it was read.
    pub fn value(&self, index: usize) -> Option<u64> {
        (index < MOST_VALUES && self.present >> index & 1 == 1).then(|| self.values[index])
    }

    /// Sets value `index`.
    pub fn set(&mut self, index: usize, value: u64) {
        self.values[index] = value;
        self.present |= 1 << index;
    }

    /// The slot's bytes after its sequence number.
    pub(super) fn encode(&self, bytes: &mut [u8], values: usize) {
        let mut put = |at: usize, part: &[u8]| bytes[at..at + part.len()].copy_from_slice(part);
        put(slot::KIND, &(self.kind as u32).to_le_bytes());
        let flags =
            u32::from(self.exact) | u32::from(self.timed) << 1 | u32::from(self.present) << 16;
        put(slot::FLAGS, &flags.to_le_bytes());
        for (i, part) in [self.device, self.context, self.stream, self.kernel]
            .iter()
            .enumerate()
        {
            put(slot::DEVICE + 4 * i, &part.to_le_bytes());
        }
        put(slot::BEGIN, &self.begin.to_le_bytes());
        put(slot::BEGIN + 8, &self.end.to_le_bytes());
        put(slot::LAUNCH, &self.launch.to_le_bytes());
        for (i, part) in self.grid.iter().chain(&self.block).enumerate() {
            put(slot::GRID + 4 * i, &part.to_le_bytes());
        }
        for (i, value) in self.values.iter().take(values).enumerate() {
            put(slot::VALUES + 8 * i, &value.to_le_bytes());
        }
    }

    /// Reads a slot that holds record `index`; nothing if it holds another or makes no sense.
    pub(super) fn decode(bytes: &[u8], index: u64, values: usize) -> Option<Self> {
        if u64_at(bytes, slot::SEQUENCE)? != index.wrapping_add(1) {
            return None;
        }
        let flags = u32_at(bytes, slot::FLAGS)?;
        let mut record = Self::new(RecordKind::from_number(u32_at(bytes, slot::KIND)?)?);
        record.exact = flags & 1 == 1;
        record.timed = flags & 2 == 2;
        record.present = (flags >> 16) as u16;
        record.device = u32_at(bytes, slot::DEVICE)?;
        record.context = u32_at(bytes, slot::DEVICE + 4)?;
        record.stream = u32_at(bytes, slot::DEVICE + 8)?;
        record.kernel = u32_at(bytes, slot::DEVICE + 12)?;
        record.begin = u64_at(bytes, slot::BEGIN)?;
        record.end = u64_at(bytes, slot::BEGIN + 8)?;
        record.launch = u64_at(bytes, slot::LAUNCH)?;
        for i in 0..3 {
            record.grid[i] = u32_at(bytes, slot::GRID + 4 * i)?;
            record.block[i] = u32_at(bytes, slot::GRID + 12 + 4 * i)?;
        }
        for i in 0..values.min(MOST_VALUES) {
            record.values[i] = u64_at(bytes, slot::VALUES + 8 * i)?;
        }
        Some(record)
    }
}

/// What an identity names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum IdentityKind {
    /// A GPU; the text is its UUID, the number its index in the process.
    Device = 1,
    /// A context; its parent is the device, its number the driver's.
    Context = 2,
    /// A kernel; the text is its name as the driver gives it.
    Kernel = 3,
    /// The process; the text is its command.
    Process = 4,
    /// The node; the text is its name.
    Node = 5,
    /// A counter, in the order of the values.
    Counter = 6,
    /// A sentence for the user.
    Notice = 7,
    /// More about a device, its parent: the text is the name of its chip.
    Chip = 8,
    /// A sentence for the user about something that was asked for and is lost.
    Loss = 9,
    /// The batch job that the process belongs to; the text is its number or name.
    Job = 10,
    /// The process's rank in a parallel program; the text is its number.
    Rank = 11,
    /// More about a device, its parent: it is simulated, and the text says what it stands for.
    Simulated = 12,
}

impl IdentityKind {
    fn from_number(number: u32) -> Option<Self> {
        Some(match number {
            1 => Self::Device,
            2 => Self::Context,
            3 => Self::Kernel,
            4 => Self::Process,
            5 => Self::Node,
            6 => Self::Counter,
            7 => Self::Notice,
            8 => Self::Chip,
            9 => Self::Loss,
            10 => Self::Job,
            11 => Self::Rank,
            12 => Self::Simulated,
            _ => return None,
        })
    }
}

/// One entry of the name table. Its place in the table is the number that records carry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Kind of thing that it names.
    pub kind: IdentityKind,
    /// Identity that it belongs to, or [`NO_IDENTITY`].
    pub parent: u32,
    /// The driver's own number.
    pub number: u32,
    /// The name.
    pub text: String,
}

impl Identity {
    /// Reads the identity at the start of `bytes`, and says how many bytes it took.
    pub(super) fn decode(bytes: &[u8]) -> Option<(Self, usize)> {
        let kind = IdentityKind::from_number(u32_at(bytes, identity::KIND)?)?;
        let length = u32_at(bytes, identity::LENGTH)? as usize;
        if length > layout::LONGEST_TEXT {
            return None;
        }
        let text = bytes.get(identity::TEXT..identity::TEXT + length)?;
        Some((
            Self {
                kind,
                parent: u32_at(bytes, identity::PARENT)?,
                number: u32_at(bytes, identity::NUMBER)?,
                text: String::from_utf8_lossy(text).into_owned(),
            },
            layout::identity_bytes(length),
        ))
    }
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_reads_back() {
        let mut record = Record::new(RecordKind::Launch);
        record.exact = true;
        record.device = 3;
        record.kernel = 9;
        record.begin = 17;
        record.end = 40;
        record.grid = [1, 2, 3];
        record.block = [4, 5, 6];
        record.set(0, 11);
        record.set(2, u64::MAX);
        let mut bytes = vec![0; layout::slot_bytes(5)];
        record.encode(&mut bytes, 5);
        bytes[..8].copy_from_slice(&8u64.to_le_bytes());
        assert_eq!(Record::decode(&bytes, 7, 5), Some(record));
        assert_eq!(Record::decode(&bytes, 6, 5), None);
    }

    #[test]
    fn bytes_that_make_no_sense_are_no_record() {
        let bytes = vec![0xff; layout::slot_bytes(2)];
        assert_eq!(Record::decode(&bytes, u64::MAX - 1, 2), None);
        assert_eq!(Record::decode(&bytes[..20], 0, 2), None);
        assert_eq!(Identity::decode(&bytes), None);
    }
}
