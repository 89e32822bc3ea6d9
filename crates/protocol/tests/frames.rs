//! Frames: what is written is read back, and nothing that comes can do harm.

use lockstep_protocol::frame::{self, FrameError, MAXIMUM_FRAME};
use lockstep_protocol::*;
use proptest::prelude::*;

fn stream_name() -> impl Strategy<Value = StreamName> {
    prop_oneof![
        Just(StreamName::Legacy),
        Just(StreamName::PerThread),
        any::<u64>().prop_map(|number| StreamName::Created(StreamHandle(number))),
    ]
}

fn place() -> impl Strategy<Value = Place> {
    prop_oneof![
        Just(Place::Host),
        any::<[u64; 3]>().prop_map(|[address, row_pitch, slice_pitch]| {
            Place::Window(Rows {
                address,
                row_pitch,
                slice_pitch,
            })
        }),
    ]
}

fn request() -> impl Strategy<Value = Request> {
    let launch = (
        stream_name(),
        any::<[u32; 3]>(),
        any::<[u32; 3]>(),
        any::<u32>(),
        proptest::collection::vec(any::<u8>(), 0..300),
        any::<bool>(),
        any::<Option<[u32; 3]>>(),
        any::<Option<i32>>(),
    )
        .prop_map(
            |(stream, grid, block, dynamic_shared, parameters, cooperative, cluster, priority)| {
                Request::Launch(Box::new(Launch {
                    context: ContextHandle(1),
                    stream,
                    function: FunctionHandle(2),
                    config: LaunchConfig {
                        grid,
                        block,
                        dynamic_shared,
                    },
                    parameters,
                    cooperative,
                    cluster,
                    priority,
                    carveout: priority,
                    programmatic_stream_serialization: cooperative,
                }))
            },
        );
    let copy = (
        stream_name(),
        place(),
        place(),
        any::<[u64; 3]>(),
        any::<bool>(),
    )
        .prop_map(
            |(stream, destination, source, [width, height, depth], blocking)| {
                Request::Copy(Copy {
                    context: ContextHandle(u64::MAX),
                    stream,
                    destination,
                    source,
                    extent: Extent {
                        width,
                        height,
                        depth,
                    },
                    blocking,
                })
            },
        );
    let load =
        proptest::collection::vec(any::<u8>(), 0..5000).prop_map(|bytes| Request::ModuleLoad {
            context: ContextHandle(3),
            images: vec![ModuleImage {
                kind: ImageKind::FatBinary,
                role: ImageRole::Main,
                bytes,
            }],
        });
    let name = ".*".prop_map(|name| Request::ModuleFunction {
        module: ModuleHandle(9),
        name,
    });
    prop_oneof![launch, copy, load, name]
}

proptest! {
    #[test]
    fn a_request_comes_back_as_it_was_sent(sent in request()) {
        let mut wire = Vec::new();
        let mut buffer = Vec::new();
        frame::write(&mut wire, &sent, &mut buffer).unwrap();
        let received: Request = frame::read(&mut wire.as_slice(), &mut buffer).unwrap();
        prop_assert_eq!(received, sent);
    }

    /// Whatever bytes come, the answer is a message or an error.
    #[test]
    fn arbitrary_bytes_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = frame::decode::<Request>(&bytes);
        let _ = frame::decode::<Response>(&bytes);
        let mut buffer = Vec::new();
        let _ = frame::read::<Request>(&mut bytes.as_slice(), &mut buffer);
        prop_assert!(buffer.capacity() <= 2 << 20);
    }

    /// A frame that is cut anywhere is an error, never a shorter message.
    #[test]
    fn a_cut_frame_is_an_error(sent in request(), part in 0.0f64..1.0) {
        let mut wire = Vec::new();
        let mut buffer = Vec::new();
        frame::write(&mut wire, &sent, &mut buffer).unwrap();
        let cut = (wire.len() as f64 * part) as usize;
        let outcome = frame::read::<Request>(&mut &wire[..cut], &mut buffer);
        prop_assert!(outcome.is_err());
    }
}

#[test]
fn an_announced_length_beyond_the_limit_is_refused_before_it_is_read() {
    let wire = u32::MAX.to_le_bytes();
    let mut buffer = Vec::new();
    let error = frame::read::<Request>(&mut wire.as_slice(), &mut buffer).unwrap_err();
    assert!(matches!(error, FrameError::TooLong { length } if length == u32::MAX as usize));
    assert_eq!(buffer.capacity(), 0);
}

#[test]
fn a_large_announcement_without_bytes_takes_no_memory() {
    let mut wire = (MAXIMUM_FRAME as u32).to_le_bytes().to_vec();
    wire.extend_from_slice(&[0; 100]);
    let mut buffer = Vec::new();
    let error = frame::read::<Request>(&mut wire.as_slice(), &mut buffer).unwrap_err();
    assert!(matches!(error, FrameError::Truncated { received: 100, .. }));
    assert!(buffer.capacity() <= 2 << 20);
}

#[test]
fn a_message_beyond_the_limit_is_not_sent() {
    let request = Request::ModuleLoad {
        context: ContextHandle(1),
        images: vec![ModuleImage {
            kind: ImageKind::Cubin,
            role: ImageRole::Main,
            bytes: vec![0; MAXIMUM_FRAME],
        }],
    };
    let mut buffer = Vec::new();
    let error = frame::encode(&request, &mut buffer).unwrap_err();
    assert!(matches!(error, FrameError::TooLong { .. }));
}

#[test]
fn bytes_after_a_message_are_an_error() {
    let mut wire = Vec::new();
    frame::encode(&Response::reply(Reply::Done), &mut wire).unwrap();
    let mut body = wire[4..].to_vec();
    body.push(0);
    let error = frame::decode::<Response>(&body).unwrap_err();
    assert!(
        error.to_string().contains("1 bytes are left over"),
        "{error}"
    );
}

#[test]
fn the_end_between_frames_is_no_error_of_the_frame() {
    let mut buffer = Vec::new();
    let error = frame::read::<Request>(&mut [].as_slice(), &mut buffer).unwrap_err();
    assert!(matches!(error, FrameError::Closed));
}
