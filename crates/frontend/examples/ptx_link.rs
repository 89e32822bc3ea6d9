//! Parses and links PTX files, and says what came of it.

fn main() {
    let mut failed = false;
    for path in std::env::args().skip(1) {
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) => {
                println!("{path}: {error}");
                failed = true;
                continue;
            }
        };
        let linked = lockstep_frontend::ptx::parse(&text).and_then(|image| {
            let mut next = 0x1000_0000u64;
            let mut addresses = Vec::new();
            for global in image.globals() {
                next = next.next_multiple_of(global.alignment.max(1));
                addresses.push(next);
                next += global.size;
            }
            image.link(&addresses)
        });
        match linked {
            Ok(module) => {
                println!("{path}: {} instructions", module.code.len());
                for kernel in &module.kernels {
                    println!(
                        "  {}: {} rows, {} predicates, {} barriers, {} B shared, {} B local",
                        kernel.name,
                        kernel.warp_registers,
                        kernel.predicates,
                        kernel.convergence_barriers,
                        kernel.shared_bytes,
                        kernel.local_bytes
                    );
                }
            }
            Err(error) => {
                println!("{path}: {error}");
                failed = true;
            }
        }
    }
    std::process::exit(i32::from(failed));
}
