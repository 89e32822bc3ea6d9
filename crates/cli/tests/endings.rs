//! What a run says of a program that met something lacking, and ended badly.

mod support;

use support::{Folder, build_cuda};

const UNSUPPORTED: &str = r#"
#include <cstdio>
#include <cstdlib>
int main(int argc, char** argv) {
    cudaGraphicsResource_t resource = nullptr;
    int mapped = cudaGraphicsMapResources(1, &resource, 0);
    cudaExternalMemory_t memory;
    cudaExternalMemoryHandleDesc handle = {};
    int imported = cudaImportExternalMemory(&memory, &handle);
    printf("%d %d\n", mapped, imported);
    return argc > 1 ? atoi(argv[1]) : 0;
}
"#;

#[test]
fn a_bad_end_begins_with_what_was_met_last() {
    let folder = Folder::new();
    if !build_cuda(&folder, UNSUPPORTED, &["-arch=sm_90"]) {
        return;
    }
    let bad = "lockstep: the program ended badly (exit code 3); before that, `cudaImportExternalMemory` answered 801";
    for quiet in [&[][..], &["--quiet"]] {
        let words = [&["run"], quiet, &["--", "./program", "3"]].concat();
        let said = folder.run(&words);
        assert_eq!((said.code, said.out.as_str()), (Some(3), "801 801\n"));
        // What the library said while the program ran comes before the report.
        let mut report = said
            .err
            .lines()
            .skip_while(|line| line.contains("the call answers"));
        let first = report.next().unwrap_or_default();
        assert!(first.starts_with(bad), "{said:?}");
    }
    let said = folder.run(&["run", "--", "./program"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(!said.err.contains("ended badly"), "{said:?}");
}

const LACKS: &str = r#"
#include <cstdio>
__global__ void asks(unsigned long long* out) {
    int is_texture;
    asm volatile("{ .reg .pred p; istypep.texref p, %1; selp.s32 %0, 1, 0, p; }" : "=r"(is_texture) : "l"(out));
    *out = is_texture;
}
int main() {
    unsigned long long* device;
    cudaMalloc(&device, 8);
    asks<<<1, 1>>>(device);
    fprintf(stderr, "launched\n");
    cudaError_t first = cudaDeviceSynchronize(), second = cudaStreamSynchronize(0);
    printf("%s %s\n", cudaGetErrorName(first), cudaGetErrorName(second));
    fprintf(stderr, "told\n");
}
"#;

/// A launch of what cannot run is an error at the next synchronisation and at every one after it, and is told before.
#[test]
fn a_kernel_that_cannot_run_is_told_at_once_and_by_its_name() {
    let folder = Folder::new();
    if !build_cuda(&folder, LACKS, &["-arch=sm_90"]) {
        return;
    }
    let said = folder.run(&["run", "--frontend", "ptx", "--", "./program"]);
    let error = "cudaErrorIllegalInstruction";
    assert_eq!(said.out, format!("{error} {error}\n"), "{said:?}");
    assert_eq!(said.code, Some(1), "{said:?}");
    let told = said.err.split("told").next().unwrap_or_default();
    let sentence = told.split_once("kernel `asks`").map(|(_, rest)| rest);
    let sentence = sentence.unwrap_or_else(|| panic!("{said:?}"));
    assert!(
        sentence.contains("unsupported instruction: `istypep"),
        "{said:?}"
    );
}
