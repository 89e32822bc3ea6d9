//! Prints every record of the segments in a folder, for a look at what an injector published.

use lockstep_segment::{SegmentDirectory, SegmentReader};

fn main() {
    let folder = std::env::args().nth(1).expect("a folder of segments");
    let directory = SegmentDirectory::observe(std::path::Path::new(&folder));
    for path in directory.segments().expect("a readable folder") {
        let mut reader = match SegmentReader::open(&path) {
            Ok(reader) => reader,
            Err(error) => {
                println!("{error}");
                continue;
            }
        };
        println!(
            "{} process {} {:?}",
            path.display(),
            reader.process(),
            reader.liveness()
        );
        loop {
            let batch = reader.read();
            if batch.records.is_empty() && batch.lost == 0 {
                break;
            }
            for (index, record) in batch.records {
                println!("{index} {record:?}");
            }
        }
        println!("lost {}", reader.lost());
        for (index, identity) in reader.identities().to_vec().iter().enumerate() {
            println!("identity {index} {identity:?}");
        }
        for row in reader.rows() {
            println!("{row:?}");
        }
    }
}
