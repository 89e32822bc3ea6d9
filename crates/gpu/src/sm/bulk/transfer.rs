//! What commands do to global and shared memory.
//!
//! A command is prepared first (what it touches is found and checked) and performed then, so that one that
//! must wait, or is wrong, has done nothing.
//!
//! Start reading at [`prepare`].

use lockstep_isa::bulk::{BulkAction, Transfer};
use lockstep_isa::memory::{AtomicOperation, AtomicType};
use lockstep_isa::semantics::atomic;
use lockstep_isa::tensor::{self, Direction, Row, fill, reduction, swizzle};
use lockstep_units::{Swizzle, TensorMap, TensorPart};

use super::Arrival;
use super::command::{Command, illegal};
use super::engine::Load;
use super::footprint::Footprint;
use super::receivers::{Receivers, offset_of};
use crate::check::race::{self, AccessKind};
use crate::check::{outside, uninitialised};
use crate::fault::FaultKind;
use crate::memory::{SECTOR, SectorBytes};
use crate::message::{ClusterAction, ClusterLane, LaneAccess, StrongAction, StrongRequest};
use crate::sm::lsu::port::Port;
use crate::sm::lsu::transactions::NOBODY;
use crate::sm::site::Site;

/// Bytes that a tile in shared memory is aligned to.
const TILE_ALIGNMENT: u32 = 128;
/// The same of bytes without a tensor.
const ALIGNMENT: u32 = 16;

/// Bytes that lie side by side in both memories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    /// Address in shared memory.
    shared: u32,
    /// Address in the other memory.
    other: u64,
    /// Bytes.
    bytes: u32,
    /// Outside of the tensor: nothing is there.
    outside: bool,
}

/// A command whose accesses are known and allowed.
#[derive(Debug)]
pub(super) struct Prepared {
    command: Command,
    transfer: Transfer,
    pieces: Vec<Piece>,
    footprint: Footprint,
    receivers: Receivers,
    /// Bytes that an mbarrier counts.
    counted: u32,
}

impl Prepared {
    /// Sectors of global memory that it touches.
    pub(super) fn sectors(&self) -> impl Iterator<Item = u64> + '_ {
        self.footprint.sectors()
    }
}

/// Finds what a command touches, and checks it.
pub(super) fn prepare(site: &mut Site<'_, '_>, command: Command) -> Result<Prepared, FaultKind> {
    let transfer = match command.action {
        BulkAction::Tensor { transfer, .. } | BulkAction::Bytes(transfer) => transfer,
        BulkAction::Commit | BulkAction::Wait { .. } => Transfer::Prefetch,
    };
    check_alignment(&command, transfer)?;
    if matches!(transfer, Transfer::Shared { .. }) && site.block.cluster.is_none() {
        let sentence = "a bulk copy from shared to shared memory in a kernel without clusters";
        return Err(FaultKind::IllegalInstruction(sentence.into()));
    }
    let receivers = Receivers::of(site, &command, transfer)?;
    let (pieces, counted) = match (&command.map, command.action) {
        (Some(map), BulkAction::Tensor { rank, im2col, .. }) => {
            check_map(map, rank, im2col)?;
            let direction = match transfer {
                Transfer::Store | Transfer::Reduce { .. } => Direction::Store,
                _ => Direction::Load,
            };
            tensor::check(map, &command.start, direction)
                .map_err(|refusal| FaultKind::IllegalInstruction(refusal.to_string()))?;
            (tensor_pieces(map, &command, direction), tensor::bytes(map))
        }
        _ => (vec![run_of_bytes(&command, transfer)?], command.bytes),
    };
    let mut footprint = Footprint::default();
    for piece in &pieces {
        if transfer != Transfer::Prefetch {
            let end = u64::from(piece.shared) + u64::from(piece.bytes);
            if end > site.block.shared.len() as u64 {
                let address = u64::from(piece.shared);
                return Err(illegal(
                    site,
                    "shared memory of a bulk copy",
                    address,
                    piece.bytes,
                ));
            }
        }
        if piece.outside || matches!(transfer, Transfer::Shared { .. }) {
            continue;
        }
        check_global(site, transfer, piece)?;
        footprint.add(piece.other, piece.bytes);
    }
    Ok(Prepared {
        command,
        transfer,
        pieces,
        footprint,
        receivers,
        counted,
    })
}

/// How addresses in shared memory are aligned.
fn check_alignment(command: &Command, transfer: Transfer) -> Result<(), FaultKind> {
    if transfer == Transfer::Prefetch {
        return Ok(());
    }
    let tile = matches!(command.action, BulkAction::Tensor { .. });
    let alignment = if tile { TILE_ALIGNMENT } else { ALIGNMENT };
    for (address, alignment, what) in [
        (command.shared, alignment, "shared memory of a bulk copy"),
        (command.source, ALIGNMENT, "shared memory of a bulk copy"),
        (command.barrier, 8, "mbarrier of a bulk copy"),
    ] {
        if !address.is_multiple_of(alignment) {
            return Err(FaultKind::Misaligned {
                what: what.into(),
                address: u64::from(address),
                bytes: alignment,
            });
        }
    }
    Ok(())
}

/// Whether an instruction suits its tensor map.
fn check_map(map: &TensorMap, rank: u8, im2col: bool) -> Result<(), FaultKind> {
    if map.rank != u32::from(rank) {
        return Err(FaultKind::IllegalInstruction(format!(
            "{rank} coordinates for a tensor map of {} dimensions",
            map.rank
        )));
    }
    if im2col != matches!(map.part, TensorPart::Im2col { .. }) {
        let kinds = ["a box", "a column of pixels"];
        return Err(FaultKind::IllegalInstruction(format!(
            "{} is asked of a tensor map that describes {}",
            kinds[usize::from(im2col)],
            kinds[usize::from(!im2col)]
        )));
    }
    Ok(())
}

fn check_global(
    site: &mut Site<'_, '_>,
    transfer: Transfer,
    piece: &Piece,
) -> Result<(), FaultKind> {
    let bytes = u64::from(piece.bytes);
    let what = "global bulk copy";
    if transfer == Transfer::Prefetch
        || site.port.holds(piece.other, bytes)
        || !outside::stops(site, piece.other, piece.bytes, what)
    {
        if site.port.checks.initialised && matches!(transfer, Transfer::Load { .. }) {
            uninitialised::check_bulk(site, piece.other, piece.bytes);
        }
        let writes = matches!(transfer, Transfer::Store | Transfer::Reduce { .. });
        return match site.port.contents.find_read_only(piece.other) {
            Some(range) if writes => Err(FaultKind::ReadOnly {
                what: "global bulk store".into(),
                address: piece.other,
                bytes: piece.bytes,
                range,
            }),
            _ => Ok(()),
        };
    }
    Err(illegal(site, what, piece.other, piece.bytes))
}

/// The pieces of a box or a column of pixels.
fn tensor_pieces(map: &TensorMap, command: &Command, direction: Direction) -> Vec<Piece> {
    let base = offset_of(command.shared);
    let mut pieces = Vec::new();
    tensor::rows(map, &command.start, &mut |row: Row| {
        let inside = match direction {
            Direction::Load => row.inside.clone(),
            Direction::Store => row.stored(),
        };
        let Row {
            offset,
            bytes,
            address,
            ..
        } = row;
        let parts = [
            (0..inside.start, true),
            (inside.clone(), false),
            (inside.end..bytes, true),
        ];
        for (part, outside) in parts {
            let mut at = part.start;
            while at < part.end {
                let place = base + offset + at;
                let mut until = part.end;
                if map.swizzle != Swizzle::None {
                    let whole = swizzle::PIECE - place % swizzle::PIECE;
                    until = until.min(at + whole);
                }
                pieces.push(Piece {
                    shared: swizzle::place(map.swizzle, place),
                    other: address.wrapping_add(u64::from(at)),
                    bytes: until - at,
                    outside,
                });
                at = until;
            }
        }
    });
    pieces
}

/// Bytes side by side.
fn run_of_bytes(command: &Command, transfer: Transfer) -> Result<Piece, FaultKind> {
    let other = match transfer {
        Transfer::Shared { .. } => u64::from(offset_of(command.source)),
        _ => command.global,
    };
    if !other.is_multiple_of(u64::from(ALIGNMENT)) {
        return Err(FaultKind::Misaligned {
            what: "global memory of a bulk copy".into(),
            address: other,
            bytes: ALIGNMENT,
        });
    }
    Ok(Piece {
        shared: offset_of(command.shared),
        other,
        bytes: command.bytes,
        outside: false,
    })
}

/// Carries a command out.
pub(super) fn perform(site: &mut Site<'_, '_>, prepared: Prepared) -> Result<(), FaultKind> {
    let map = prepared.command.map.as_deref();
    match prepared.transfer {
        Transfer::Load { .. } => {
            let lanes = load(site, &prepared, map);
            arrive(site, &prepared, ClusterAction::StoreAsync, lanes);
        }
        Transfer::Shared { reduce } => {
            let action = match reduce {
                Some((operation, kind)) => ClusterAction::ReduceAsync(operation, kind),
                None => ClusterAction::StoreAsync,
            };
            let lanes = copy_shared(site, &prepared, reduce)?;
            arrive(site, &prepared, action, lanes);
        }
        Transfer::Store => {
            store(site, &prepared);
            if site.timed {
                let (slot, cycle) = (site.slot, site.now.cycle);
                let lines = &prepared.footprint.lines;
                site.port.bulk.write(lines, slot, site.block, cycle);
            }
        }
        Transfer::Reduce { operation, kind } => {
            let kind = kind.or(map.and_then(|map| reduction::kind(map.element)));
            reduce(site, &prepared, operation, kind)?;
        }
        Transfer::Prefetch => {
            if site.timed {
                let lines = &prepared.footprint.lines;
                site.port.bulk.prefetch(lines, site.block, site.now.cycle);
            }
        }
    }
    Ok(())
}

/// Mbarriers count the bytes, and other blocks receive them: at once, or when the engine has them.
fn arrive(
    site: &mut Site<'_, '_>,
    prepared: &Prepared,
    action: ClusterAction,
    lanes: Vec<ClusterLane>,
) {
    let barrier = offset_of(prepared.command.barrier);
    let own = prepared.receivers.own.then_some(Arrival {
        block: site.warp.block,
        barrier,
        bytes: prepared.counted,
    });
    let others = prepared
        .receivers
        .requests(site.block.launch, action, lanes);
    let load = Load { own, others };
    if site.timed {
        let bulk = &mut site.port.bulk;
        bulk.read(load, &prepared.footprint.lines, site.block, site.now.cycle);
    } else {
        site.port.bulk.arrived.extend(load.own);
        for (sm, request) in load.others {
            site.port
                .send_bulk_to_cluster(sm, request, *site.now, site.outbox);
        }
    }
}

/// Reads the bytes of a piece of global memory as they go to shared memory.
fn read_piece(
    port: &Port,
    known: &mut Option<(u64, SectorBytes)>,
    piece: &Piece,
    map: Option<&TensorMap>,
    target: &mut [u8],
) {
    if piece.outside {
        if let Some(map) = map {
            fill::outside(map.element, map.nan_fill, target);
        }
        return;
    }
    let mut done = 0;
    while done < target.len() {
        let address = piece.other + done as u64;
        let sector = address / SECTOR;
        let bytes = match *known {
            Some((at, bytes)) if at == sector => bytes,
            _ => port.sector(sector),
        };
        *known = Some((sector, bytes));
        let at = (address % SECTOR) as usize;
        let count = (target.len() - done).min(SECTOR as usize - at);
        target[done..done + count].copy_from_slice(&bytes[at..at + count]);
        done += count;
    }
    if let Some(map) = map {
        fill::convert(map.element, target);
    }
}

/// Global to shared memory. What other blocks receive comes back.
fn load(site: &mut Site<'_, '_>, prepared: &Prepared, map: Option<&TensorMap>) -> Vec<ClusterLane> {
    let mut known = None;
    let mut lanes = Vec::new();
    let mut bytes = Vec::new();
    let barrier = offset_of(prepared.command.barrier);
    if prepared.receivers.own && site.block.race.is_some() {
        let pieces = prepared.pieces.iter();
        race::hooks::bulk_writes(
            site,
            pieces.map(|piece| (piece.shared, piece.bytes)),
            barrier,
        );
    }
    for piece in &prepared.pieces {
        bytes.clear();
        bytes.resize(piece.bytes as usize, 0);
        read_piece(site.port, &mut known, piece, map, &mut bytes);
        if prepared.receivers.own {
            let at = piece.shared as usize;
            site.block.shared[at..at + bytes.len()].copy_from_slice(&bytes);
        }
        if prepared.receivers.has_others() {
            push_lanes(&mut lanes, piece.shared, &bytes, LANE_BYTES, barrier);
        }
    }
    lanes
}

/// Bytes that one lane of a request to another block carries.
const LANE_BYTES: usize = 16;

/// Adds bytes for another block, so many to a lane.
fn push_lanes(lanes: &mut Vec<ClusterLane>, place: u32, bytes: &[u8], size: usize, barrier: u32) {
    for (index, part) in bytes.chunks(size).enumerate() {
        let mut lane = ClusterLane {
            bytes: part.len() as u8,
            place: place + (index * size) as u32,
            mbarrier: barrier,
            ..ClusterLane::default()
        };
        let mut words = [0; LANE_BYTES];
        words[..part.len()].copy_from_slice(part);
        lane.set_bytes(words);
        lanes.push(lane);
    }
}

/// Calls `visit` with the bytes of every sector that pieces in global memory lie in: sector, first byte in
/// it, and the bytes as shared memory has them.
fn each_sector(prepared: &Prepared, shared: &[u8], mut visit: impl FnMut(u64, usize, &[u8])) {
    for piece in prepared.pieces.iter().filter(|piece| !piece.outside) {
        let source = &shared[piece.shared as usize..(piece.shared + piece.bytes) as usize];
        let mut done = 0;
        while done < source.len() {
            let address = piece.other + done as u64;
            let at = (address % SECTOR) as usize;
            let count = (source.len() - done).min(SECTOR as usize - at);
            visit(address / SECTOR, at, &source[done..done + count]);
            done += count;
        }
    }
}

fn store(site: &mut Site<'_, '_>, prepared: &Prepared) {
    if site.block.race.is_some() {
        let lane = site.warp.convergence.active().trailing_zeros() as usize % 32;
        let pieces = prepared.pieces.iter().filter(|piece| !piece.outside);
        let pieces: Vec<_> = pieces
            .map(|piece| (lane, piece.shared, piece.bytes))
            .collect();
        race::hooks::pieces(site, AccessKind::Read, &pieces);
    }
    let (log, since) = (&mut site.port.log, site.now.since);
    each_sector(prepared, &site.block.shared, |sector, at, source| {
        let mut bytes = [0; SECTOR as usize];
        bytes[at..at + source.len()].copy_from_slice(source);
        let mask = (u64::MAX >> (64 - source.len()) << at) as u32;
        log.write(sector, &bytes, mask, since);
    });
}

/// One element of a reduction.
fn element_at(bytes: &[u8]) -> u64 {
    let mut value = [0; 8];
    value[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(value)
}

/// The type of a reduction that the engine has.
fn supported(
    operation: AtomicOperation,
    kind: Option<AtomicType>,
) -> Result<AtomicType, FaultKind> {
    let known = kind.filter(|kind| reduction::exists(operation, *kind));
    known.ok_or_else(|| {
        let sentence = format!("no {operation:?} of elements of this type ({kind:?})");
        FaultKind::IllegalInstruction(sentence)
    })
}

/// Shared to global memory, where slices combine it.
fn reduce(
    site: &mut Site<'_, '_>,
    prepared: &Prepared,
    operation: AtomicOperation,
    kind: Option<AtomicType>,
) -> Result<(), FaultKind> {
    let kind = supported(operation, kind)?;
    let size = kind.bytes() as usize;
    let mut requests = Vec::<Box<StrongRequest>>::new();
    let (port, tag) = (&mut *site.port, site.block.tag);
    each_sector(prepared, &site.block.shared, |sector, at, source| {
        if requests.last().is_none_or(|last| last.sector != sector) {
            let action = StrongAction::Reduce(operation, kind);
            let mut request = port.request(action, sector, NOBODY);
            request.tag = tag;
            requests.push(request);
        }
        let request = requests.last_mut().expect("one was just added");
        for (index, bytes) in source.chunks_exact(size).enumerate() {
            request.lanes.push(LaneAccess {
                lane: (request.lanes.len() % 32) as u8,
                offset: (at + index * size) as u8,
                element: 0,
                operand: element_at(bytes),
                second: 0,
            });
        }
    });
    site.block.counters.strong_accesses += requests.len() as u64;
    if site.timed {
        requests
            .iter_mut()
            .for_each(|request| site.port.start_strong(request));
        let cycle = site.now.cycle;
        site.port
            .bulk
            .reduce(requests, site.slot, site.block, cycle);
        return Ok(());
    }
    for request in requests {
        site.port
            .send_strong(request, site.slot, || 1, *site.now, site.outbox);
    }
    Ok(())
}

/// Shared to shared memory. What another block receives comes back.
fn copy_shared(
    site: &mut Site<'_, '_>,
    prepared: &Prepared,
    reduce: Option<(AtomicOperation, AtomicType)>,
) -> Result<Vec<ClusterLane>, FaultKind> {
    let size = match reduce {
        Some((operation, kind)) => supported(operation, Some(kind))?.bytes() as usize,
        None => LANE_BYTES,
    };
    let mut lanes = Vec::new();
    for piece in &prepared.pieces {
        let bytes = piece.bytes as usize;
        let (from, to) = (piece.other as usize, piece.shared as usize);
        if from + bytes > site.block.shared.len() {
            let what = "shared memory of a bulk copy";
            return Err(illegal(site, what, piece.other, piece.bytes));
        }
        let source = site.block.shared[from..from + bytes].to_vec();
        if prepared.receivers.has_others() {
            let barrier = offset_of(prepared.command.barrier);
            push_lanes(&mut lanes, piece.shared, &source, size, barrier);
            continue;
        }
        let target = &mut site.block.shared[to..to + bytes];
        let Some((operation, kind)) = reduce else {
            target.copy_from_slice(&source);
            continue;
        };
        for (old, new) in target.chunks_exact_mut(size).zip(source.chunks_exact(size)) {
            let (before, operand) = (element_at(old), element_at(new));
            let before = u128::from(before);
            let value = atomic::apply(operation, kind, before, operand.into(), 0);
            old.copy_from_slice(&value.unwrap_or(before).to_le_bytes()[..size]);
        }
    }
    Ok(lanes)
}
