"""Single kernels from code: arguments, values that come back, refusals."""

import ctypes
import json

import pytest

import lockstep

numpy = pytest.importorskip("numpy")

TWO_KERNELS = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry first() { ret; }
.visible .entry second(.param .u64 where, .param .u16 small, .param .f64 real, .param .u8 byte)
{
    .reg .b64 %p;
    .reg .b16 %s;
    .reg .f64 %r;
    ld.param.u64 %p, [where];
    ld.param.u16 %s, [small];
    st.global.u16 [%p], %s;
    ld.param.u8 %s, [byte];
    st.global.u8 [%p+2], %s;
    ld.param.f64 %r, [real];
    st.global.f64 [%p+8], %r;
    ret;
}
"""


def test_a_kernel_of_ptx_gives_values_and_counters(ptx):
    a, b, c = (numpy.arange(1000, dtype=numpy.float32) * factor for factor in (1, 10, 0))
    profile = lockstep.profile(ptx, a, b, c, 1000, grid=4, block=256)
    numpy.testing.assert_array_equal(c, a + b)
    assert profile["sm__warps_launched.sum"] == 32
    assert profile["cycles"] == profile["sm__cycles_elapsed.max"] > 100
    assert json.loads(profile.to_json())[0]["kernel"] == "vector_add"
    assert "| sm__warps_launched.sum | 32 |" in profile.to_markdown()
    assert sum(profile.stalls.column("share")) == pytest.approx(1)
    assert profile.counters.columns[:2] == ["launch", "kernel"]
    with pytest.raises(lockstep.LockstepError, match="no counter is called `cycle`"):
        profile["cycle"]


def test_a_profile_counts_what_a_run_of_the_program_counts(ptx, vector_add):
    a, c = numpy.arange(1000, dtype=numpy.float32), numpy.zeros(1000, numpy.float32)
    profile = lockstep.profile(ptx, a, numpy.ones_like(a), c, 1000, grid=4, block=256)
    program = lockstep.run([*vector_add, "1000"])
    other = {"start_ns", "start_cycle"}  # the program does other things before its launch
    ours, theirs = profile.run.kernels[0], program.kernels[0]
    assert {name: ours[name] for name in ours if name not in other} == {
        name: theirs[name] for name in theirs if name not in other
    }


def test_numbers_take_the_size_of_their_parameter():
    out = numpy.zeros(16, numpy.uint8)
    lockstep.profile(TWO_KERNELS, out, 65535, 2.5, numpy.uint8(7), entry="second", block=1)
    assert (out[:2].view(numpy.uint16)[0], out[2], out[8:].view(numpy.float64)[0]) == (65535, 7, 2.5)
    lockstep.profile(TWO_KERNELS, out, ctypes.c_short(-2), 1.0, True, entry="second", block=1)
    assert (out[:2].view(numpy.int16)[0], out[2]) == (-2, 1)


def test_files_and_bytes_are_kernels_too(place, ptx):
    a = numpy.ones(8, numpy.float32)
    (place / "add.ptx").write_text(ptx)
    for kernel in (place / "add.ptx", "add.ptx", ptx.encode()):
        c = numpy.zeros(8, numpy.float32)
        lockstep.profile(kernel, a, a, c, 8, block=32, mode="functional")
        assert c.tolist() == [2] * 8, "one array may be two arguments"


def test_what_cannot_be_written_is_not(ptx):
    a, c = numpy.ones(8, numpy.float32), numpy.zeros(8, numpy.float32)
    c.flags.writeable = False
    lockstep.profile(ptx, a, a, c, 8, block=32, mode="functional")
    assert c.tolist() == [0] * 8


@pytest.mark.parametrize(
    "arguments, options, sentence",
    [
        ((1,), {}, "`vector_add` has 4 parameters, and 1 arguments were given"),
        ((None, None, None, 2**40), {}, "argument 3 is 1099511627776, which 4 bytes do not hold"),
        ((None, None, numpy.float32(1), 1), {}, "argument 2 has 4 bytes, and the kernel has a parameter of 8 bytes"),
        ((None, None, 1.5, object()), {}, "an argument of type object cannot go to a kernel"),
        ((None, None, None, 1), {"entry": "sub"}, "no kernel is called `sub`; the code has: vector_add"),
        ((None, None, None, 1), {"block": 0}, "the block is 0; it is one to three numbers above 0"),
        ((None, None, None, 1), {"grid": (1, 2, 3, 4)}, "the grid is "),
        ((None, None, None, 1), {"num_warps": 4}, "`num_warps` is no option of a kernel of this kind"),
        ((None, None, None, 1), {"block": 2048}, "cuLaunchKernel answers CUDA_ERROR_INVALID_VALUE"),
        ((None, None, None, 32), {}, "illegal"),
    ],
)
def test_what_is_wrong_is_said(ptx, arguments, options, sentence):
    with pytest.raises(lockstep.LockstepError, match=sentence):
        lockstep.profile(ptx, *arguments, **{"block": 32, **options})


def test_kernels_that_are_none_are_said():
    with pytest.raises(lockstep.LockstepError, match="`nothing.cubin` is neither PTX text nor a file"):
        lockstep.profile("nothing.cubin", block=1)
    with pytest.raises(lockstep.LockstepError, match=r"a builtins\.int is no kernel"):
        lockstep.profile(5, block=1)
    with pytest.raises(lockstep.LockstepError, match="which kernel is meant; the code has: first, second"):
        lockstep.profile(TWO_KERNELS, block=1)
    with pytest.raises(lockstep.LockstepError, match="cuModuleLoadData answers CUDA_ERROR"):
        lockstep.profile(b"\x7fELF and nothing else", block=1)


def test_arrays_that_would_be_torn_apart_are_refused(ptx):
    a = numpy.zeros(16, numpy.float32)
    with pytest.raises(lockstep.LockstepError, match="different parts of one array"):
        lockstep.profile(ptx, a[:8], a[4:12], a[:8], 8, block=32)
    with pytest.raises(lockstep.LockstepError, match="gaps between its elements"):
        lockstep.profile(ptx, a[::2], a, a, 8, block=32)
