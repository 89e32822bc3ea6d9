//! Stream capture.

use super::graph::{EdgeData, check_edges, listed};
use crate::boundary::{driver, runtime};
use crate::context::{current, current_for_runtime};
use crate::fair_mutex::FairMutex;
use crate::graph::capture::{self, Information};
use crate::graph::model::{decode_graph, graph_handle, node_handle};
use crate::process::lock;
use crate::streams::{Target, target};
use crate::thread;
use crate::types::{Address, In, Out};
use lockstep_protocol::CuResult;
use std::collections::BTreeMap;

fn exchange(mode: Out<i32>) -> Result<(), CuResult> {
    let wanted = mode.current()?;
    if !(0..=2).contains(&wanted) {
        return Err(CuResult::INVALID_VALUE);
    }
    mode.set(thread::current().capture_mode.replace(wanted))
}

fn end(target: Target, graph: Out<Address>) -> Result<(), CuResult> {
    graph.check()?;
    graph.set_if_wanted(0);
    graph.set(graph_handle(capture::end(target)?))
}

fn status(target: Target, answer: Out<i32>) -> Result<(), CuResult> {
    answer.check()?;
    answer.set(capture::information(target)?.status)
}

/// Where a list of nodes goes that the program only reads: one place a capture, which stays
/// until the same capture is asked about again.
fn keep(identity: u64, nodes: &[u64]) -> Address {
    static KEPT: FairMutex<BTreeMap<u64, Box<[Address]>>> = FairMutex::new(BTreeMap::new());
    let list: Box<[Address]> = nodes.iter().map(|node| node_handle(*node)).collect();
    let place = list.as_ptr() as Address;
    lock(&KEPT).insert(identity, list);
    place
}

struct Places {
    status: Out<i32>,
    identity: Out<u64>,
    graph: Out<Address>,
    nodes: Out<Address>,
    edges: Out<Address>,
    count: Out<usize>,
}

fn inform(target: Target, places: Places) -> Result<(), CuResult> {
    let Information {
        status,
        identity,
        graph,
        after,
    } = capture::information(target)?;
    places.status.set(status)?;
    if status != capture::ACTIVE {
        return Ok(());
    }
    places.identity.set_if_wanted(identity);
    places.graph.set_if_wanted(graph_handle(graph));
    places.count.set_if_wanted(after.len());
    places.edges.set_if_wanted(0);
    if !places.nodes.pointer().is_null() {
        places.nodes.set(keep(identity, &after))?;
    }
    Ok(())
}

fn begin_into(
    target: Target,
    graph: Address,
    after: In<Address>,
    data: In<EdgeData>,
    count: usize,
    mode: i32,
) -> Result<(), CuResult> {
    check_edges(data, count)?;
    let after = listed(after, count)?;
    capture::begin(target, mode, Some(decode_graph(graph)?), after)
}

fn update(target: Target, nodes: In<Address>, count: usize, flags: u32) -> Result<(), CuResult> {
    const REPLACE: u32 = 1;
    if flags > REPLACE {
        return Err(CuResult::INVALID_VALUE);
    }
    capture::update(target, listed(nodes, count)?, flags == REPLACE)
}

/// A place that is not wanted.
fn nowhere<T>() -> Out<T> {
    Out::at(0)
}

runtime! {
    fn cudaStreamBeginCapture | cudaStreamBeginCapture_ptsz [defaults] (stream: Address, mode: i32) {
        let target = target(stream, defaults, current_for_runtime)?;
        Ok(capture::begin(target, mode, None, Vec::new())?)
    }

    fn cudaStreamBeginCaptureToGraph | cudaStreamBeginCaptureToGraph_ptsz [defaults] (stream: Address, graph: Address, after: In<Address>, data: In<EdgeData>, count: usize, mode: i32) {
        let target = target(stream, defaults, current_for_runtime)?;
        Ok(begin_into(target, graph, after, data, count, mode)?)
    }

    fn cudaStreamEndCapture | cudaStreamEndCapture_ptsz [defaults] (stream: Address, graph: Out<Address>) {
        Ok(end(target(stream, defaults, current_for_runtime)?, graph)?)
    }

    fn cudaStreamIsCapturing | cudaStreamIsCapturing_ptsz [defaults] (stream: Address, answer: Out<i32>) {
        Ok(status(target(stream, defaults, current_for_runtime)?, answer)?)
    }

    fn cudaStreamGetCaptureInfo | cudaStreamGetCaptureInfo_ptsz [defaults] (stream: Address, status: Out<i32>, identity: Out<u64>) {
        let target = target(stream, defaults, current_for_runtime)?;
        Ok(inform(target, Places { status, identity, graph: nowhere(), nodes: nowhere(), edges: nowhere(), count: nowhere() })?)
    }

    fn cudaStreamGetCaptureInfo_v2 | cudaStreamGetCaptureInfo_v2_ptsz [defaults] (stream: Address, status: Out<i32>, identity: Out<u64>, graph: Out<Address>, nodes: Out<Address>, count: Out<usize>) {
        let target = target(stream, defaults, current_for_runtime)?;
        Ok(inform(target, Places { status, identity, graph, nodes, edges: nowhere(), count })?)
    }

    fn cudaStreamGetCaptureInfo_v3 | cudaStreamGetCaptureInfo_v3_ptsz [defaults] (stream: Address, status: Out<i32>, identity: Out<u64>, graph: Out<Address>, nodes: Out<Address>, edges: Out<Address>, count: Out<usize>) {
        let target = target(stream, defaults, current_for_runtime)?;
        Ok(inform(target, Places { status, identity, graph, nodes, edges, count })?)
    }

    fn cudaStreamUpdateCaptureDependencies | cudaStreamUpdateCaptureDependencies_ptsz [defaults] (stream: Address, nodes: In<Address>, count: usize, flags: u32) {
        Ok(update(target(stream, defaults, current_for_runtime)?, nodes, count, flags)?)
    }

    fn cudaStreamUpdateCaptureDependencies_v2 | cudaStreamUpdateCaptureDependencies_v2_ptsz [defaults] (stream: Address, nodes: In<Address>, data: In<EdgeData>, count: usize, flags: u32) {
        check_edges(data, count)?;
        Ok(update(target(stream, defaults, current_for_runtime)?, nodes, count, flags)?)
    }

    fn cudaThreadExchangeStreamCaptureMode(mode: Out<i32>) {
        Ok(exchange(mode)?)
    }
}

driver! {
    /// Before there were modes every capture was a global one.
    fn cuStreamBeginCapture | cuStreamBeginCapture_ptsz [defaults] (stream: Address) {
        capture::begin(target(stream, defaults, current)?, 0, None, Vec::new())
    }

    fn cuStreamBeginCapture_v2 | cuStreamBeginCapture_v2_ptsz [defaults] (stream: Address, mode: i32) {
        capture::begin(target(stream, defaults, current)?, mode, None, Vec::new())
    }

    fn cuStreamBeginCaptureToGraph | cuStreamBeginCaptureToGraph_ptsz [defaults] (stream: Address, graph: Address, after: In<Address>, data: In<EdgeData>, count: usize, mode: i32) {
        begin_into(target(stream, defaults, current)?, graph, after, data, count, mode)
    }

    fn cuStreamEndCapture | cuStreamEndCapture_ptsz [defaults] (stream: Address, graph: Out<Address>) {
        end(target(stream, defaults, current)?, graph)
    }

    fn cuStreamIsCapturing | cuStreamIsCapturing_ptsz [defaults] (stream: Address, answer: Out<i32>) {
        status(target(stream, defaults, current)?, answer)
    }

    fn cuStreamGetCaptureInfo | cuStreamGetCaptureInfo_ptsz [defaults] (stream: Address, status: Out<i32>, identity: Out<u64>) {
        let target = target(stream, defaults, current)?;
        inform(target, Places { status, identity, graph: nowhere(), nodes: nowhere(), edges: nowhere(), count: nowhere() })
    }

    fn cuStreamGetCaptureInfo_v2 | cuStreamGetCaptureInfo_v2_ptsz [defaults] (stream: Address, status: Out<i32>, identity: Out<u64>, graph: Out<Address>, nodes: Out<Address>, count: Out<usize>) {
        let target = target(stream, defaults, current)?;
        inform(target, Places { status, identity, graph, nodes, edges: nowhere(), count })
    }

    fn cuStreamGetCaptureInfo_v3 | cuStreamGetCaptureInfo_v3_ptsz [defaults] (stream: Address, status: Out<i32>, identity: Out<u64>, graph: Out<Address>, nodes: Out<Address>, edges: Out<Address>, count: Out<usize>) {
        let target = target(stream, defaults, current)?;
        inform(target, Places { status, identity, graph, nodes, edges, count })
    }

    fn cuStreamUpdateCaptureDependencies | cuStreamUpdateCaptureDependencies_ptsz [defaults] (stream: Address, nodes: In<Address>, count: usize, flags: u32) {
        update(target(stream, defaults, current)?, nodes, count, flags)
    }

    fn cuStreamUpdateCaptureDependencies_v2 | cuStreamUpdateCaptureDependencies_v2_ptsz [defaults] (stream: Address, nodes: In<Address>, data: In<EdgeData>, count: usize, flags: u32) {
        check_edges(data, count)?;
        update(target(stream, defaults, current)?, nodes, count, flags)
    }

    fn cuThreadExchangeStreamCaptureMode(mode: Out<i32>) {
        exchange(mode)
    }
}
