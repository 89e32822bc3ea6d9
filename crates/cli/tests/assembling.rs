//! PTX as a driver takes it: made into machine code by `ptxas`, and kept.

mod support;

use std::path::Path;
use support::{Folder, Said, build_cuda};

const PROGRAM: &str = r#"
#include <cstdio>
__global__ void squares(int* out) { out[threadIdx.x] = threadIdx.x * threadIdx.x; }
int main() {
    int *device, host[64], wrong = 0;
    cudaMalloc(&device, sizeof host);
    squares<<<1, 64>>>(device);
    if (cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost) != cudaSuccess) return 2;
    for (int i = 0; i < 64; ++i) wrong += host[i] != i * i;
    cudaFuncAttributes of;
    cudaFuncGetAttributes(&of, squares);
    printf("wrong %d, compute_%d\n", wrong, of.ptxVersion);
    return wrong != 0;
}
"#;
const GOOD: (Option<i32>, &str) = (Some(0), "wrong 0, compute_75\n");
const APPROXIMATE: &str = "instruction counts and cycles are approximate";

/// The program, with PTX and nothing else; none if this machine cannot build it.
fn build() -> Option<Folder> {
    let folder = Folder::new();
    let ptx_alone = "-gencode=arch=compute_75,code=compute_75";
    build_cuda(&folder, PROGRAM, &[ptx_alone]).then_some(folder)
}

/// Runs it with this assembler and this cache.
fn run(folder: &Folder, assembler: &str, cache: &str, options: &[&str]) -> Said {
    let mut command = folder.lockstep();
    command
        .env("LOCKSTEP_PTXAS", assembler)
        .env("LOCKSTEP_CACHE", cache)
        .arg("run")
        .args(options)
        .args(["--", "./program"]);
    let said = Said::from(command.output().unwrap());
    assert_eq!((said.code, said.out.as_str()), GOOD, "{said:?}");
    said
}

fn digest(said: &Said) -> &str {
    let mut lines = said.err.lines();
    lines
        .find_map(|line| line.strip_prefix("digest "))
        .unwrap_or_else(|| panic!("{said:?}"))
}

#[test]
fn ptx_is_assembled_once_and_no_digest_depends_on_that() {
    let (Some(compiler), Some(folder)) = (support::compiler(), build()) else {
        return;
    };
    let (log, real) = (folder.0.join("log"), compiler.with_file_name("ptxas"));
    let script = format!(
        "#!/bin/sh\necho \"$1\" >> {}\nexec {} \"$@\"\n",
        log.display(),
        real.display()
    );
    let assembler = folder.script("ptxas", &script);
    let calls = || {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        // The next question is about calls since this one.
        let _ = std::fs::remove_file(&log);
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let cache = folder.0.join("cache");
    let cache = cache.to_str().unwrap();
    let cold = run(&folder, &assembler, cache, &[]);
    assert_eq!(calls(), ["--version", "-arch=sm_90"]);
    let remark = "its PTX was assembled by ptxas ";
    assert_eq!(cold.err.matches(remark).count(), 1, "{cold:?}");
    assert!(!cold.err.contains(APPROXIMATE), "{cold:?}");
    let warm = run(&folder, &assembler, cache, &[]);
    assert_eq!(calls(), [""; 0], "all was kept");
    assert_eq!(digest(&warm), digest(&cold));
    assert!(warm.err.contains(remark), "{warm:?}");
    let without = run(&folder, &assembler, "", &[]);
    assert_eq!(calls(), ["--version", "-arch=sm_90"], "nothing is kept");
    assert_eq!(digest(&without), digest(&cold));
    // What somebody spoilt is made anew.
    for entry in std::fs::read_dir(Path::new(cache).join("ptxas")).unwrap() {
        std::fs::write(entry.unwrap().path(), "spoilt").unwrap();
    }
    let anew = run(&folder, &assembler, cache, &[]);
    assert_eq!(calls(), ["--version", "-arch=sm_90"]);
    assert_eq!(digest(&anew), digest(&cold));
}

#[test]
fn an_assembler_that_fails_leaves_ptx_with_a_sentence() {
    let Some(folder) = build() else {
        return;
    };
    let assembler = folder.script("ptxas", "#!/bin/sh\necho it is Monday >&2\nexit 1\n");
    let failed = run(&folder, &assembler, "", &[]);
    let sentence = "PTX runs, because it could not be made into machine code";
    for words in [sentence, "it is Monday", APPROXIMATE] {
        assert!(failed.err.contains(words), "{words}: {failed:?}");
    }
    let asked = run(&folder, &assembler, "", &["--frontend", "ptx"]);
    assert!(!asked.err.contains("Monday"), "{asked:?}");
    assert!(asked.err.contains(APPROXIMATE), "{asked:?}");
    assert_eq!(digest(&asked), digest(&failed), "the same code");
    let mut command = folder.lockstep();
    command
        .env("LOCKSTEP_PTXAS", &assembler)
        .args(["run", "--assemble", "--", "./program"]);
    let refused = Said::from(command.output().unwrap());
    assert_ne!(refused.code, Some(0), "{refused:?}");
    assert!(refused.err.contains("it is Monday"), "{refused:?}");
}
