"""One kernel being written: scopes, launch, memory, expressions, statements.

Every form builds on `Kernel`. Chance comes from `kernel.rng` alone, so a seed names a program.

A value has a *uniformity*, how far it certainly is the same: "thread" < "warp" < "block" < "launch".
Code has *convergence*: which lanes certainly reach this point. `with kernel.block(header, kind)` opens a
block that is entered under a condition of that uniformity.
"""

import random
import re
from contextlib import contextmanager
from dataclasses import dataclass, field

from .types import TYPES, WEIGHTS, immediate

LEVELS = {"thread": 0, "warp": 1, "block": 2, "launch": 3}
FORMS = []
OPERATIONS = {}


@dataclass
class Form:
    write: object
    weight: float
    needs: str
    where: str
    cost: int


def form(weight=3, needs="thread", where="anywhere", cost=30):
    """Registers a function that writes statements.

    needs: "thread" (anywhere), "warp" (all lanes of each warp must reach it), "block" (all threads of the block).
    where: "anywhere" or "kernel" (not in device functions: uses `thread`, `lane`, `input`, `memory` and so on).
    cost: instructions that a thread executes in it, roughly.
    """

    def register(function):
        FORMS.append(Form(function, weight, needs, where, cost))
        return function

    return register


@dataclass
class Operation:
    result: str
    parts: list  # alternately text and placeholder
    weight: float
    need: str
    host: bool


def operations(table, need="", host=True):
    """Registers operations, one a line: `result | text | weight`.

    In the text `{u32}` stands for an expression of the type, `{=u32}` for an immediate, `{0-31}` for a literal in the range,
    `{$f32}` for a variable. The weight is 1 if absent.
    """
    for line in table.strip().splitlines():
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        # "||" and "|" are operators of C++: only a bar between spaces at the ends separates.
        result, rest = line.split(" | ", 1)
        match = re.search(r" \| ([0-9.]+)$", rest)
        weight = float(match.group(1)) if match else 1.0
        text = rest[: match.start()] if match else rest
        operation = Operation(result.strip(), re.split(r"\{([^{}]+)\}", text.strip()), weight, need, host)
        OPERATIONS.setdefault(operation.result, []).append(operation)


@dataclass
class Variable:
    name: str
    type: str
    uniform: str = "thread"
    mutable: bool = False


@dataclass
class Frame:
    """A kernel or a device function: its lines, and what can be seen in it."""

    lines: list = field(default_factory=list)
    declarations: list = field(default_factory=list)  # at the top of the body
    variables: list = field(default_factory=list)
    indent: int = 1
    in_kernel: bool = True
    converged: bool = True
    block_converged: bool = True
    scale: int = 1  # how often the code here runs at most
    nesting: int = 0
    loops: int = 0  # loops open in this frame
    left: str = ""  # "thread" or "warp" once some have returned
    exits: bool = True  # whether statements may return or leave a loop
    open_loops: list = field(default_factory=list)  # convergence at the start of each body; None for a switch
    result: str = ""  # the type that a device function returns


class Program:
    """A file: what its kernels share."""

    def __init__(self, seed):
        self.seed = seed
        self.needs = set()
        self.tops = []
        self.symbols = []  # (name, bytes)
        self.kernels = []

    def source(self):
        lines = [f"#define NEEDS_{need.upper()}" for need in sorted(self.needs)]
        lines.append('#include "program.cuh"')
        lines.append("")
        lines += self.tops
        for kernel in self.kernels:
            lines += kernel.source()
        return "\n".join(lines) + "\n"

    def manifest(self):
        lines = [f"symbol {name} {size}" for name, size in self.symbols]
        lines += [kernel.manifest() for kernel in self.kernels]
        return "\n".join(lines) + "\n"


class Kernel:
    # Instructions of a warp times warps that a kernel may execute, roughly.
    BUDGET = 40_000

    def __init__(self, program, index, statements=None):
        self.program = program
        self.index = index
        self.rng = random.Random(f"{program.seed}:{index}")
        self.frame = Frame()
        self.counter = 0
        self.memory_bytes = 0
        self.shared_bytes = 0
        self.parameters = []  # (declaration, name, bytes)
        self.host = True
        self.cooperative = False
        self.arch = 0
        self.limits = {}
        self.attributes = ""
        self.choose_launch()
        self.input_bytes = 4096
        self.work = 0
        self.preamble()
        # Statements written so far and at most, those inside others and in functions counted.
        self.written = 0
        self.most = statements or self.rng.choice((2, 6, 12, 18, 24, 30, 36, 45))

    # -- launch ------------------------------------------------------------------------------------------------

    def choose_launch(self):
        rng = self.rng
        self.grid = rng.choice(((1, 1, 1), (1, 1, 1), (2, 1, 1), (2, 1, 1), (3, 1, 1), (4, 1, 1), (2, 2, 1), (1, 1, 2)))
        self.block_dims = rng.choice(((32, 1, 1), (32, 1, 1), (64, 1, 1), (64, 1, 1), (96, 1, 1), (128, 1, 1), (256, 1, 1),
                                      (33, 1, 1), (70, 1, 1), (16, 4, 1), (8, 4, 3), (7, 5, 2), (31, 1, 1), (1, 1, 1)))

    @property
    def threads(self):
        """Threads of a block."""
        x, y, z = self.block_dims
        return x * y * z

    @property
    def blocks(self):
        x, y, z = self.grid
        return x * y * z

    @property
    def warps(self):
        """Warps of a block; the last may be partial."""
        return (self.threads + 31) // 32

    @property
    def full_warps(self):
        """Whether every warp has 32 lanes."""
        return self.threads % 32 == 0

    def preamble(self):
        x, y, z = self.block_dims
        gx, gy, gz = self.grid
        thread = "threadIdx.x" if y * z == 1 else f"threadIdx.x + {x}u * (threadIdx.y + {y}u * threadIdx.z)"
        block = "blockIdx.x" if gy * gz == 1 else f"blockIdx.x + {gx}u * (blockIdx.y + {gy}u * blockIdx.z)"
        self.emit(f"u32 thread = {thread};")
        self.emit(f"u32 block = {block};")
        self.emit("u32 lane = thread & 31u;")
        self.emit("u32 warp = thread >> 5;")
        self.emit(f"u32 global = block * {self.threads}u + thread;")
        if self.full_warps:
            self.emit("u32 lanes = 0xffffffffu;")
        else:
            rest = self.threads % 32
            self.emit(f"u32 lanes = warp == {self.threads // 32}u ? 0x{(1 << rest) - 1:x}u : 0xffffffffu;")
        self.emit("u64 h = mix(0x243f6a8885a308d3ull, global);")
        for name, uniform in (("thread", "thread"), ("lane", "thread"), ("global", "thread"), ("warp", "warp"), ("block", "block")):
            self.frame.variables.append(Variable(name, "u32", uniform))
        self.frame.variables.append(Variable("h", "u64"))

    # -- text --------------------------------------------------------------------------------------------------

    def emit(self, line):
        """Writes one statement."""
        self.frame.lines.append("    " * self.frame.indent + line)

    def top(self, line):
        """Writes a line at file scope, before all kernels."""
        self.program.tops.append(line)

    def need(self, feature):
        """Asks `program.cuh` for a feature: "half", "bf16", "groups", ..."""
        self.program.needs.add(feature)

    def fresh(self, prefix="v"):
        """A new name, unique in the program."""
        self.counter += 1
        return f"{prefix}{self.index}_{self.counter}"

    @contextmanager
    def block(self, header, kind="thread", trips=1, loop=False):
        """A block in braces, entered under a condition of this uniformity ("always" for a plain block)."""
        frame = self.frame
        saved = (len(frame.variables), frame.converged, frame.block_converged, frame.scale)
        self.emit(header)
        self.emit("{")
        frame.indent += 1
        frame.nesting += 1
        frame.scale *= trips
        if kind == "thread":
            frame.converged = frame.block_converged = False
        elif kind == "warp":
            frame.block_converged = False
        frame.loops += loop
        if loop or header.startswith("switch"):
            frame.open_loops.append((frame.converged, frame.block_converged) if loop else None)
        yield
        if loop or header.startswith("switch"):
            frame.open_loops.pop()
        self.fold_new(saved[0])
        frame.indent -= 1
        frame.nesting -= 1
        frame.loops -= loop
        del frame.variables[saved[0]:]
        frame.converged, frame.block_converged, frame.scale = saved[1:]
        self.emit("}")

    def fold_new(self, first):
        """Folds some of the variables that are about to go out of sight."""
        dead = self.frame.lines[-1].strip().split(" ")[0] in ("return;", "break;", "continue;", "goto", "return")
        for variable in self.frame.variables[first:]:
            if not dead and variable.name != "h" and self.rng.random() < 0.35:
                self.fold_value(variable.name)

    def may_leave_loop(self):
        """Whether `break` and `continue` may stand here: who gets here is who runs the body of the loop.

        A body that counted as converged must not lose lanes to a condition inside it.
        """
        frame = self.frame
        return frame.exits and bool(frame.open_loops) and frame.open_loops[-1] == (frame.converged, frame.block_converged)

    def may_return(self):
        """Whether an early return may stand here, for the same reason."""
        frame = self.frame
        here = (frame.converged, frame.block_converged)
        return frame.exits and (frame.in_kernel or frame.result) and all(state in (here, None) for state in frame.open_loops)

    def leave(self):
        """Returns early."""
        if self.frame.in_kernel:
            self.emit("output[global] = h;")
            self.emit("return;")
        else:
            self.emit(f"return {self.expression(self.frame.result, 1)};")
        self.lanes_exit("block" if self.frame.block_converged else "warp" if self.frame.converged else "thread")

    def lanes_exit(self, kind="thread"):
        """Notes that some threads (or whole warps) may leave the function here: what follows is not converged."""
        self.frame.left = "thread" if "thread" in (kind, self.frame.left) else kind

    @contextmanager
    def function(self, result, arguments, attributes="__device__ __noinline__", name=None, scale=1, closing=True):
        """A device function: `arguments` are (type, name). Statements written inside go to it; yields its name.

        In it `h` is a local hash, which the body should return in some form.
        """
        name = name or self.fresh("f")
        outer = self.frame
        self.frame = Frame(in_kernel=False, result=result, converged=False, block_converged=False, scale=outer.scale * scale, nesting=outer.nesting + 1)
        for type_, argument in arguments:
            if type_ in TYPES:
                self.frame.variables.append(Variable(argument, type_))
        self.emit("u64 h = 0x13198a2e03707344ull;")
        yield name
        text = ", ".join(f"{type_} {argument}" for type_, argument in arguments)
        lines = [f"{attributes} {result} {name}({text})", "{", *self.frame.declarations, *self.frame.lines, "}", ""]
        self.program.tops.extend(lines)
        self.frame = outer

    # -- convergence -------------------------------------------------------------------------------------------

    @property
    def converged(self):
        """Whether all lanes of each warp certainly get here (not that they get here together)."""
        return self.frame.converged and self.frame.left != "thread"

    @property
    def block_converged(self):
        """Whether all threads of the block certainly get here."""
        return self.frame.block_converged and not self.frame.left

    # -- memory ------------------------------------------------------------------------------------------------

    def memory(self, size, align=16):
        """Reserves bytes of `memory` for the launch and returns their offset. They start as zeros."""
        offset = -(-self.memory_bytes // align) * align
        self.memory_bytes = offset + size
        return offset

    def thread_memory(self, size):
        """Text of a pointer to `size` bytes of `memory` which belong to this thread, aligned to 16 if `size` is a multiple."""
        offset = self.memory(size * self.threads * self.blocks)
        return f"(memory + {offset}u + global * {size}u)"

    def block_memory(self, size):
        """Text of a pointer to `size` bytes of `memory` which belong to this block."""
        size = -(-size // 16) * 16
        offset = self.memory(size * self.blocks)
        return f"(memory + {offset}u + block * {size}u)"

    def shared(self, type_, count, align=0):
        """Declares an array in shared memory and returns its name; None if there is no room."""
        size = (TYPES[type_].bytes if type_ in TYPES else 16) * count
        if self.shared_bytes + size > 32768:
            return None
        self.shared_bytes += size + 16
        name = self.fresh("s")
        attribute = f"__align__({align}) " if align else ""
        self.frame.declarations.append(f"    __shared__ {attribute}{type_} {name}[{count}];")
        return name

    def symbol(self, type_, count, space="__constant__", size=None):
        """Declares an array in constant or global memory that the runner fills; returns its name."""
        name = self.fresh("c" if space == "__constant__" else "g")
        self.top(f"{space} {type_} {name}[{count}];")
        self.program.symbols.append((name, size or TYPES[type_].bytes * count))
        return name

    def parameter(self, type_, size):
        """Adds a parameter by value, of a type declared at file scope or one of ours; returns its name."""
        name = self.fresh("p")
        self.parameters.append((f"{type_} {name}", name, size))
        return name

    # -- expressions -------------------------------------------------------------------------------------------

    def pick_type(self, among=None):
        names = [n for n in (among or WEIGHTS) if self.allows(n)]
        return self.rng.choices(names, [WEIGHTS[n] for n in names])[0]

    def allows(self, type_):
        """Whether the kernel uses the type: halves only where the program asked for them."""
        need = TYPES[type_].need
        return not need or need in self.program.needs

    def variables(self, type_=None, uniform="thread"):
        level = LEVELS[uniform]
        return [v for v in self.frame.variables if (type_ is None or v.type == type_) and LEVELS[v.uniform] >= level]

    def immediate(self, type_):
        return immediate(self.rng, type_)

    def leaf(self, type_, uniform="thread"):
        """A variable, an immediate, or a read of memory."""
        rng = self.rng
        if type_ == "bool":
            type_ = rng.choice(("u32", "i32", "u64"))
            return f"({self.leaf(type_, uniform)} {rng.choice(('<', '>', '=='))} {self.leaf(type_, uniform)})"
        chance = rng.random()
        visible = self.variables(type_, uniform)
        if visible and chance < 0.55:
            recent = visible[-6:] if rng.random() < 0.6 else visible
            return rng.choice(recent).name
        if chance < 0.72:
            return self.immediate(type_)
        others = [v for v in self.variables(None, uniform) if v.type != type_]
        if others and chance < 0.86:
            return self.convert(rng.choice(others), type_)
        return self.read(type_, uniform)

    def convert(self, variable, type_):
        """The text of a variable as another type, by a conversion that is always defined."""
        return f"to_{type_}({variable.name})"

    def read(self, type_, uniform="thread"):
        """A read of constant memory, parameters or the input."""
        rng = self.rng
        if self.frame.in_kernel and rng.random() < 0.5:
            size = TYPES[type_].bytes
            count = self.input_bytes // size
            if uniform == "thread" and rng.random() < 0.7:
                index = f"({self.index_text()}) & {count - 1}u"
            else:
                index = str(rng.randrange(count))
            return f"as_const<{type_}>(input)[{index}]"
        name, count = self.constant_array(type_)
        if uniform == "thread" and rng.random() < 0.4:
            return f"{name}[({self.index_text()}) % {count}u]"
        return f"{name}[{rng.randrange(count)}]"

    def index_text(self):
        """A u32 that differs from thread to thread, cheap."""
        visible = [v.name for v in self.variables("u32")]
        if not visible:
            return str(self.rng.randrange(64)) + "u"
        name = self.rng.choice(visible)
        choice = self.rng.randrange(4)
        return (name, f"{name} + {self.rng.randrange(32)}u", f"{name} * {self.rng.randrange(2, 9)}u", f"{name} ^ {self.rng.randrange(1, 64)}u")[choice]

    def constant_array(self, type_):
        """An array in constant memory of this type, of any small size: (name, count)."""
        arrays = self.__dict__.setdefault("arrays", {}).setdefault(type_, [])
        if len(arrays) < 3 and (not arrays or self.rng.random() < 0.2):
            count = self.rng.randrange(1, 68)
            arrays.append((self.symbol(type_, count), count))
        return self.rng.choice(arrays)

    def expression(self, type_, depth=None, uniform="thread"):
        """A random expression of the type, whose value has at least this uniformity."""
        rng = self.rng
        if depth is None:
            depth = rng.choice((1, 1, 1, 2, 2, 3))
        choices = self.operations_of(type_)
        if depth <= 0 or not choices or rng.random() < 0.12:
            return self.leaf(type_, uniform)
        operation = rng.choices(choices, self.__dict__["weights"][type_])[0]
        if not operation.host:
            self.host = False
        return self.fill(operation.parts, depth - 1, uniform)

    def operations_of(self, type_):
        cache = self.__dict__.setdefault("operations", {})
        if type_ not in cache:
            cache[type_] = [o for o in OPERATIONS.get(type_, ()) if not o.need or o.need in self.program.needs]
            self.__dict__.setdefault("weights", {})[type_] = [o.weight for o in cache[type_]]
        return cache[type_]

    def fill(self, parts, depth, uniform):
        texts = []
        for number, part in enumerate(parts):
            if number % 2 == 0:
                texts.append(part)
            elif part[0] == "=":
                texts.append(self.immediate(part[1:]))
            elif part[0] == "$":
                texts.append(self.leaf(part[1:], uniform))
            elif part[0].isdigit():
                low, high = part.split("-")
                texts.append(str(self.rng.randrange(int(low), int(high) + 1)))
            else:
                texts.append(self.expression(part, depth, uniform))
        return "".join(texts)

    def condition(self, kind="thread"):
        """A condition of exactly this uniformity: "thread" may differ from lane to lane."""
        rng = self.rng
        if kind == "thread" and self.frame.in_kernel and rng.random() < 0.4:
            return rng.choice((
                lambda: f"lane {rng.choice(('<', '>=', '==', '!='))} {rng.randrange(32)}u",
                lambda: f"(lane & {rng.choice((1, 2, 4, 8, 16, 3, 5, 17))}u) {rng.choice(('==', '!='))} 0u",
                lambda: f"(0x{rng.getrandbits(32):08x}u >> lane) & 1u",
                lambda: f"thread % {rng.randrange(2, 8)}u {rng.choice(('==', '<', '>'))} {rng.randrange(3)}u",
            ))()
        return self.expression("bool", rng.choice((1, 1, 2)), uniform=kind)

    # -- statements --------------------------------------------------------------------------------------------

    def declare(self, type_, text, uniform="thread", name=None, mutable=None):
        """Writes a variable with its value; it can be seen by expressions from here on."""
        name = name or self.fresh("v")
        self.emit(f"{type_} {name} = {text};")
        if type_ in TYPES:
            if mutable is None:
                mutable = uniform == "thread"
            self.frame.variables.append(Variable(name, type_, uniform, mutable))
        return name

    def fold(self, text):
        """Mixes a 64-bit value into the hash of this thread."""
        self.emit(f"h = mix(h, {text});")

    def fold_value(self, text):
        """Mixes a value of any of our types into the hash, NaNs made one."""
        self.fold(f"bits({text})")

    def room(self, trips=1, cost=30):
        """Whether code of this cost may run this often here."""
        return self.work + self.frame.scale * trips * cost * self.warps * self.blocks < self.BUDGET

    def statement(self):
        """Writes one statement of a form that may stand here; False where the kernel is large enough."""
        frame = self.frame
        if self.written >= self.most:
            return False
        self.written += 1
        choices = []
        weights = []
        for entry in FORMS:
            if entry.needs == "block" and not (self.block_converged and frame.in_kernel):
                continue
            if entry.needs == "warp" and not (self.converged and frame.in_kernel):
                continue
            if entry.where == "kernel" and not frame.in_kernel:
                continue
            if not self.room(1, entry.cost):
                continue
            choices.append(entry)
            weights.append(entry.weight)
        if not choices:
            return False
        entry = self.rng.choices(choices, weights)[0]
        self.work += frame.scale * entry.cost * self.warps * self.blocks
        if entry.needs != "thread" and "stack" in self.limits:
            # Lanes may have come back from calls apart.
            self.need("together")
            self.emit("rejoin(lanes);")
        entry.write(self)
        return True

    def statements(self, count, exits=False):
        """Writes random statements. With `exits` some may leave a loop or return: only where no one waits for these lanes."""
        frame = self.frame
        saved = frame.exits
        frame.exits = saved and exits
        for _ in range(count):
            if not self.statement():
                break
        frame.exits = saved

    def write(self):
        rng = self.rng
        for type_ in ("u32", "u64", "f32", "i32"):
            self.declare(type_, self.read(type_))
        self.statements(self.most, exits=True)
        for variable in self.variables():
            if variable.name not in ("h", "thread", "lane", "global", "warp", "block") and rng.random() < 0.7:
                self.fold_value(variable.name)
        self.emit("output[global] = h;")

    def source(self):
        parameters = "".join(f", {declaration}" for declaration, _, _ in self.parameters)
        return [
            f'extern "C" __global__ void {self.attributes}k{self.index}(const unsigned char *input, unsigned long long *output, unsigned char *memory{parameters})',
            "{", *self.frame.declarations, *self.frame.lines, "}", "",
        ]

    def manifest(self):
        fields = [
            f"k{self.index}", "grid", *map(str, self.grid), "block", *map(str, self.block_dims), "shared", "0",
            "input", str(self.input_bytes), "output", str(self.threads * self.blocks), "memory", str(max(16, -(-self.memory_bytes // 16) * 16)),
        ]
        if self.parameters:
            fields += ["params", ",".join(str(size) for _, _, size in self.parameters)]
        fields += ["cooperative", str(int(self.cooperative))]
        if self.limits:
            fields += ["limits", ",".join(f"{name}={value}" for name, value in sorted(self.limits.items()))]
        if not self.host:
            fields += ["host", "0"]
        if self.arch:
            fields += ["arch", str(self.arch)]
        return " ".join(fields)


def write_program(seed, kernels):
    """The program of a seed: its source and its manifest."""
    program = Program(seed)
    rng = random.Random(f"{seed}:program")
    for feature, chance in (("half", 0.5), ("bf16", 0.35), ("groups", 0.06)):
        if rng.random() < chance:
            program.needs.add(feature)
    for index in range(kernels):
        kernel = Kernel(program, index)
        kernel.write()
        program.kernels.append(kernel)
    return program.source(), program.manifest()
