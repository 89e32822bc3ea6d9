//! Where accesses to the memory of other GPUs leave a GPU.
//!
//! L2 holds no lines of other GPUs: what SMs want of them crosses the links each time. A slice has its
//! share of the links, as addresses are spread over slices evenly: reads wait for their data to come
//! in, and writes for their turn to go out. The sectors of a line are one packet; requests to read and
//! answers to writes are packets without data, which go the other way. Only time is modelled here; values are performed where
//! the GPU performs its own, in the one order that memory has.
//!
//! An access to a multicast object crosses the sender's link once and the link of each member once: the switch makes
//! many of one, or one of many. Such an access is here as one for each member, which charges its part of the sender's
//! link and all of what crosses the member's. What the GPUs put on each other's links so, they tell each other when
//! they meet ([`PeerPort::take_loads`], [`PeerPort::add_loads`]).
//!
//! Left out: what several GPUs want of the same one at the same time by ordinary accesses, and copies on the same
//! links.
//!
//! Start reading at [`PeerPort::read`], for multicast objects at [`PeerPort::multicast_write`].

use std::ops::Range;

use lockstep_engine::{LoadError, Reader, Writer};
use lockstep_stats::statistics;
use lockstep_units::{Bandwidth, Bytes, Duration, Time};
use serde::{Deserialize, Serialize};

use crate::memory::{LINE, SECTOR};

/// The memory of the other GPUs of a node, and the links to them.
#[derive(Clone, Debug)]
pub struct PeerLinks {
    /// Addresses of the memory of each other GPU.
    pub memories: Vec<Range<u64>>,
    /// Whether they are all reached through one port; else each has a link of its own.
    pub one_port: bool,
    /// What a port carries in one direction.
    pub bandwidth: Bandwidth,
    /// What a packet has on a link beside its data.
    pub packet_header: Bytes,
    /// From one GPU to another.
    pub latency: Duration,
}

statistics! {
    /// What one L2 slice counts of the memory of other GPUs.
    pub struct PeerStats {
        /// Sectors of other GPUs that were read.
        read_sectors: Counter [sectors],
        /// Sectors of other GPUs that were written.
        written_sectors: Counter [sectors],
        /// Sectors of members of multicast objects that were read to be reduced, on the way to the switch.
        multicast_read_sectors: Counter [sectors],
        /// Sectors that the switch sent to members of multicast objects.
        multicast_written_sectors: Counter [sectors],
    }
}

/// The two directions of the link between a GPU and the switch: to the switch, and from it. How long each is busy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkLoad {
    /// To the switch.
    pub up: Duration,
    /// From the switch.
    pub down: Duration,
}

/// A packet of an access to a multicast object, of which one member has a part.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// Members of the object.
    pub members: u8,
    /// Sectors that share the packet.
    pub sectors: u32,
}

/// When a link has carried everything, in each direction.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct LinkTimes {
    up: Time,
    down: Time,
}

/// The share that one slice has of the links to other GPUs.
#[derive(Clone, Debug)]
pub struct PeerPort {
    links: PeerLinks,
    /// There and back, with a look into L2 there.
    round_trip: Duration,
    /// How long the share of a link is busy with a sector.
    sector_time: Duration,
    /// How long it is busy with what a packet has beside its data.
    header_time: Duration,
    /// When each port has brought in what came before, and when it has sent out what went before.
    free: Vec<[Time; 2]>,
    /// When the last write has arrived.
    arrived: Time,
    /// When the links of the other GPUs have carried what multicast objects put on them, as far as is known here.
    others: Vec<LinkTimes>,
    /// What this GPU has put on them since they were told.
    loads: Vec<LinkLoad>,
    /// What it counts.
    pub stats: PeerStats,
}

impl PeerPort {
    /// A share of idle links, one of `slices`; a look into L2 at the other end takes `hit_latency`.
    pub fn new(links: &PeerLinks, slices: u32, hit_latency: Duration) -> Self {
        let ports = if links.one_port {
            1
        } else {
            links.memories.len()
        };
        let sector = Bytes(SECTOR * u64::from(slices));
        Self {
            round_trip: links.latency * 2 + hit_latency,
            sector_time: links.bandwidth.time_for(sector),
            header_time: links
                .bandwidth
                .time_for(links.packet_header * u64::from(slices)),
            free: vec![[Time::ZERO; 2]; ports],
            arrived: Time::ZERO,
            others: vec![LinkTimes::default(); links.memories.len()],
            loads: vec![LinkLoad::default(); links.memories.len()],
            stats: PeerStats::default(),
            links: links.clone(),
        }
    }

    /// The port to the GPU that a line belongs to, if it is another's.
    pub fn port_of(&self, line: u64) -> Option<usize> {
        let address = line * LINE;
        let mut memories = self.links.memories.iter();
        let found = memories.position(|memory| memory.contains(&address))?;
        Some(if self.links.one_port { 0 } else { found })
    }

    /// Reads sectors through a port; says when they are here.
    pub fn read(&mut self, port: usize, sectors: u8, begin: Time) -> Time {
        let count = u64::from(sectors.count_ones());
        self.stats.read_sectors.add(count);
        let data = self.header_time + self.sector_time * count;
        let [free_in, free_out] = &mut self.free[port];
        // A request is small enough to slip in between writes that wait, but takes their time.
        *free_out = begin.max(*free_out) + self.header_time;
        *free_in = (begin + self.header_time + self.round_trip).max(*free_in) + data;
        *free_in
    }

    /// Writes sectors through a port; says when the other GPU has acknowledged them.
    pub fn write(&mut self, port: usize, sectors: u8, begin: Time) -> Time {
        let count = u64::from(sectors.count_ones());
        self.stats.written_sectors.add(count);
        let data = self.header_time + self.sector_time * count;
        let [free_in, free_out] = &mut self.free[port];
        *free_out = begin.max(*free_out) + data;
        *free_in = begin.max(*free_in) + self.header_time;
        let arrived = *free_out + self.links.latency;
        self.arrived = self.arrived.max(arrived);
        arrived + self.links.latency + self.header_time
    }

    /// Writes a sector to one member of a multicast object; says when it has acknowledged.
    pub fn multicast_write(&mut self, line: u64, packet: Packet, begin: Time) -> Time {
        self.stats.multicast_written_sectors.add(1);
        let header = part(self.header_time, packet.sectors);
        let (data, parts) = (self.sector_time + header, u32::from(packet.members));
        let member = self.member_of(line);
        let [own_down, own_up] = &mut self.free[0];
        *own_up = begin.max(*own_up) + part(data, parts);
        // Acknowledgements are joined to one.
        *own_down = begin.max(*own_down) + part(header, parts);
        let down = match member {
            Some(other) => {
                self.loads[other].down += data;
                &mut self.others[other].down
            }
            None => own_down,
        };
        // The switch begins to pass on what begins to arrive.
        *down = (*down).max(begin) + data;
        let arrived = (*own_up).max(*down) + self.links.latency;
        self.arrived = self.arrived.max(arrived);
        arrived + self.links.latency + header
    }

    /// Reads a sector of one member of a multicast object, to be reduced in the switch; says when the result is here.
    pub fn multicast_read(&mut self, line: u64, packet: Packet, begin: Time) -> Time {
        self.stats.multicast_read_sectors.add(1);
        let header = part(self.header_time, packet.sectors);
        let (data, parts) = (self.sector_time + header, u32::from(packet.members));
        let member = self.member_of(line);
        let [own_down, own_up] = &mut self.free[0];
        // The request is small enough to slip in between writes that wait, but takes their time.
        *own_up = begin.max(*own_up) + part(header, parts);
        let up = match member {
            Some(other) => {
                self.loads[other].up += data;
                &mut self.others[other].up
            }
            None => own_up,
        };
        *up = (*up).max(begin) + data;
        let asked = begin + part(header, parts) + self.round_trip;
        let ready = asked.max(*up + self.round_trip);
        *own_down = ready.max(*own_down) + part(data, parts);
        *own_down
    }

    /// The GPU that has a line, by its place among the others; none is this one.
    fn member_of(&self, line: u64) -> Option<usize> {
        let address = line * LINE;
        let mut memories = self.links.memories.iter();
        memories.position(|memory| memory.contains(&address))
    }

    /// Whether anything was put on the links of other GPUs that they were not told.
    pub fn has_loads(&self) -> bool {
        self.loads.iter().any(|load| *load != LinkLoad::default())
    }

    /// Takes what was put on the links of the other GPUs since the last time, as time of this share.
    pub fn take_loads(&mut self, sums: &mut [LinkLoad]) {
        for (sum, load) in sums.iter_mut().zip(&mut self.loads) {
            let load = std::mem::take(load);
            sum.up += load.up;
            sum.down += load.down;
        }
    }

    /// Adds what others have put on links since a time: on the own one, and on those of the others.
    pub fn add_loads(&mut self, since: Time, own: LinkLoad, others: &[LinkLoad]) {
        let add = |free: &mut Time, load: Duration| {
            if load.0 > 0 {
                *free = since.max(*free) + load;
            }
        };
        let [own_down, own_up] = &mut self.free[0];
        add(own_up, own.up);
        add(own_down, own.down);
        for (times, load) in self.others.iter_mut().zip(others) {
            add(&mut times.up, load.up);
            add(&mut times.down, load.down);
        }
    }

    /// When all writes so far have arrived.
    pub fn arrived(&self) -> Time {
        self.arrived
    }

    /// Writes what it is at.
    pub fn save(&self, writer: &mut Writer<'_>) {
        writer.write(&(&self.free, self.arrived, &self.stats, &self.others));
    }

    /// Takes on what `save` wrote.
    ///
    /// # Errors
    /// If the bytes are not what it wrote for a port like this one.
    pub fn load(&mut self, reader: &mut Reader<'_>) -> Result<(), LoadError> {
        let ports = self.free.len();
        let others = self.others.len();
        (self.free, self.arrived, self.stats, self.others) = reader.read()?;
        if self.free.len() != ports || self.others.len() != others {
            let what = "another number of links to other GPUs";
            return Err(LoadError::Malformed { what });
        }
        Ok(())
    }
}

/// One of equal parts.
fn part(whole: Duration, parts: u32) -> Duration {
    Duration(whole.0 / u64::from(parts.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two other GPUs; one slice has a whole link of 32 bytes a nanosecond.
    fn port(one_port: bool) -> PeerPort {
        with_header(one_port, 0)
    }

    fn with_header(one_port: bool, header: u64) -> PeerPort {
        let links = PeerLinks {
            memories: vec![1 << 40..2 << 40, 2 << 40..3 << 40],
            one_port,
            bandwidth: Bandwidth::new(32_000_000_000).unwrap(),
            packet_header: Bytes(header),
            latency: Duration::nanoseconds(500),
        };
        PeerPort::new(&links, 1, Duration::nanoseconds(100))
    }

    fn after(nanoseconds: u64) -> Time {
        Time::ZERO + Duration::nanoseconds(nanoseconds)
    }

    #[test]
    fn lines_of_others_are_known_by_their_addresses() {
        let mesh = port(false);
        assert_eq!(mesh.port_of(0), None);
        assert_eq!(mesh.port_of((1 << 40) / LINE), Some(0));
        assert_eq!(mesh.port_of((2 << 40) / LINE), Some(1));
        assert_eq!(mesh.port_of((3 << 40) / LINE), None);
        assert_eq!(port(true).port_of((2 << 40) / LINE), Some(0));
    }

    #[test]
    fn a_read_takes_the_way_there_and_back_and_others_follow_at_the_rate_of_the_link() {
        let mut port = port(false);
        assert_eq!(port.read(0, 0b1111, Time::ZERO), after(1104));
        assert_eq!(port.read(0, 0b0001, Time::ZERO), after(1105));
        assert_eq!(
            port.read(1, 0b0001, Time::ZERO),
            after(1101),
            "its own link"
        );
        // However many there are, no more than the link carries.
        let mut last = Time::ZERO;
        for _ in 0..1000 {
            last = port.read(0, 0b1111, Time::ZERO);
        }
        assert_eq!(last, after(1105 + 4000));
    }

    #[test]
    fn writes_go_out_beside_reads_and_are_acknowledged() {
        let mut port = port(true);
        port.read(0, 0b1111, Time::ZERO);
        assert_eq!(port.write(0, 0b0011, Time::ZERO), after(1002));
        assert_eq!(port.arrived(), after(502));
        assert_eq!(port.stats.written_sectors.get(), 2);
    }

    #[test]
    fn packets_have_headers_in_both_directions() {
        let mut port = with_header(true, 32);
        for _ in 0..1000 {
            port.write(0, 0b1111, Time::ZERO);
        }
        // Five for each packet of four sectors.
        assert_eq!(port.arrived(), after(5000 + 500));
        // Answers to these take what comes in too.
        assert_eq!(port.free[0][0], after(1000));
        // The request, the way, and a packet with one sector.
        let mut port = with_header(true, 32);
        assert_eq!(port.read(0, 0b0001, Time::ZERO), after(1 + 1100 + 2));
        assert_eq!(port.free[0][1], after(1));
    }

    /// A line of this GPU and one of each other.
    const LINES: [u64; 3] = [0, (1 << 40) / LINE, (2 << 40) / LINE];

    #[test]
    fn a_multicast_store_crosses_the_senders_link_once_and_each_members_once() {
        let mut port = port(true);
        let packet = Packet {
            members: 2,
            sectors: 4,
        };
        for _ in 0..3000 {
            for line in &LINES[..2] {
                port.multicast_write(*line, packet, Time::ZERO);
            }
        }
        assert_eq!(port.free[0], [after(3000), after(3000)]);
        assert_eq!(port.arrived(), after(3000 + 500));
        let mut loads = [LinkLoad::default(); 2];
        port.take_loads(&mut loads);
        let expected = LinkLoad {
            up: Duration(0),
            down: Duration::nanoseconds(3000),
        };
        assert_eq!(loads, [expected, LinkLoad::default()]);
        assert!(!port.has_loads());
    }

    #[test]
    fn members_send_all_they_have_and_the_reader_receives_one_result() {
        let mut port = with_header(true, 32);
        let packet = Packet {
            members: 2,
            sectors: 4,
        };
        let mut last = Time::ZERO;
        for _ in 0..4000 {
            for line in &LINES[..2] {
                last = last.max(port.multicast_read(*line, packet, Time::ZERO));
            }
        }
        // Five for each packet of four sectors, and one for each request on the reader's own link.
        let [down, up] = port.free[0];
        assert!(
            down >= after(1100 + 6000) && down <= after(1100 + 6002),
            "{down:?}"
        );
        assert_eq!(up, after(5000 + 1000), "its own part and its requests");
        assert!(last >= after(6000 + 1100), "{last:?}");
        let mut loads = [LinkLoad::default(); 2];
        port.take_loads(&mut loads);
        let up = Duration::nanoseconds(5000);
        let expected = LinkLoad {
            up,
            down: Duration(0),
        };
        assert_eq!(loads, [expected, LinkLoad::default()]);
    }

    #[test]
    fn what_others_put_on_links_is_waited_for() {
        let mut port = port(true);
        let packet = Packet {
            members: 2,
            sectors: 1,
        };
        let busy = |up, down| LinkLoad {
            up: Duration::nanoseconds(up),
            down: Duration::nanoseconds(down),
        };
        // The second other GPU receives for a microsecond more.
        port.add_loads(after(100), busy(0, 0), &[busy(0, 0), busy(0, 1000)]);
        let at = port.multicast_write(LINES[1], packet, after(100));
        assert_eq!(at, after(100 + 1 + 1000));
        let at = port.multicast_write(LINES[2], packet, after(100));
        assert_eq!(at, after(100 + 1000 + 1 + 1000));
        // And so does this one, by which ordinary reads wait too.
        port.add_loads(after(100), busy(300, 5000), &[busy(0, 0), busy(0, 0)]);
        assert_eq!(port.read(0, 1, after(100)), after(5100 + 1));
        assert_eq!(port.write(0, 1, after(100)), after(402 + 1000));
    }

    #[test]
    fn a_port_is_saved_and_loaded() {
        let mut one = port(true);
        one.write(0, 0b1111, after(7));
        let mut bytes = Vec::new();
        one.save(&mut Writer::new(&mut bytes));
        let mut other = port(true);
        other.load(&mut Reader::new(&bytes)).unwrap();
        assert_eq!(other.write(0, 1, after(8)), one.write(0, 1, after(8)));
        assert!(port(false).load(&mut Reader::new(&bytes)).is_err());
    }
}
