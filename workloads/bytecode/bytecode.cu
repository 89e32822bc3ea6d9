// Interpreters: programs of a small stack machine, one for all lanes, one for each warp, one for each lane, and
// expressions evaluated over rows of a table.
//
// Usage: bytecode [threads]
#include "../common/workload.cuh"

using namespace workload;

constexpr int LENGTH = 48, PROGRAMS = 32, STACK = 16;
constexpr int THREADS = 128;

struct Instruction {
    unsigned short operation, operand;
};

__host__ __device__ inline unsigned interpret(const Instruction* program, unsigned input) {
    unsigned stack[STACK] = {input, input * 3u, input ^ 0x55u, 7u}, accumulator = input;
    int top = 3;
    for (int at = 0; at < LENGTH; at++) {
        Instruction now = program[at];
        unsigned value = stack[top];
        switch (now.operation % 12) {
            case 0: accumulator += value; break;
            case 1: accumulator ^= value << (now.operand & 15); break;
            case 2: if (top < STACK - 1) stack[++top] = accumulator; break;
            case 3: if (top > 0) accumulator = stack[top--]; break;
            case 4: accumulator = accumulator * (now.operand | 1u) + 12345u; break;
            case 5: stack[now.operand % (top + 1)] = accumulator; break;
            case 6: if (accumulator & 1u) at++; break;
            case 7: accumulator = accumulator >> 3 | accumulator << 29; break;
            case 8: accumulator = value / (now.operand + 1u) + accumulator; break;
            case 9: accumulator = accumulator > value ? accumulator - value : value - accumulator; break;
            case 10: for (unsigned k = 0; k < (accumulator & 3u); k++) accumulator += k * value + 1u; break;
            default: stack[top] = accumulator + now.operand; break;
        }
    }
    return accumulator + stack[0] + unsigned(top);
}

__global__ void one_program(const Instruction* programs, unsigned* values, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) values[i] = interpret(programs, values[i]);
}
__global__ void program_a_warp(const Instruction* programs, unsigned* values, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) values[i] = interpret(programs + i / 32 % PROGRAMS * LENGTH, values[i]);
}
__global__ void program_a_lane(const Instruction* programs, unsigned* values, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) values[i] = interpret(programs + i % 4 * LENGTH, values[i]);
}

// Every step of an expression is a pass over the thread's columns: operands are columns of a table.
__host__ __device__ inline unsigned evaluate(const Instruction* program, const unsigned* table, int count, int i, unsigned* columns) {
    for (int k = 0; k < 4; k++) columns[k] = table[size_t(k) * count + i];
    for (int at = 0; at < LENGTH / 2; at++) {
        Instruction now = program[at];
        unsigned a = columns[now.operand & 3], b = columns[now.operand >> 2 & 3];
        unsigned result = now.operation & 1 ? (now.operation & 2 ? a * b : a + b) : (now.operation & 2 ? a ^ b : a - b);
        columns[now.operand >> 4 & 3] = result;
    }
    return columns[0] ^ columns[1] ^ columns[2] ^ columns[3];
}
__global__ void evaluate_rows(const Instruction* program, const unsigned* table, unsigned* out, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned columns[4];
    if (i < count) out[i] = evaluate(program, table, count, i, columns);
}

int main(int argc, char** argv) {
    int count = argument(argc, argv, 1, 2048, 1 << 22);
    Random random(41);
    std::vector<Instruction> programs(PROGRAMS * LENGTH);
    for (Instruction& one : programs) one = {static_cast<unsigned short>(random.below(1 << 16)), static_cast<unsigned short>(random.below(1 << 16))};
    std::vector<unsigned> start(count), table(size_t(count) * 4);
    for (unsigned& value : start) value = random.next();
    for (unsigned& value : table) value = random.next();
    Buffer<Instruction> device(programs);
    Buffer<unsigned> one(start), warps(start), lanes(start), device_table(table), rows(count);
    int blocks = blocks_for(count, THREADS);
    one_program<<<blocks, THREADS>>>(device, one, count);
    program_a_warp<<<blocks, THREADS>>>(device, warps, count);
    program_a_lane<<<blocks, THREADS>>>(device, lanes, count);
    evaluate_rows<<<blocks, THREADS>>>(device, device_table, rows, count);
    CHECK_LAUNCH();
    std::vector<unsigned> wanted[4];
    unsigned columns[4];
    for (int i = 0; i < count; i++) {
        wanted[0].push_back(interpret(programs.data(), start[i]));
        wanted[1].push_back(interpret(programs.data() + i / 32 % PROGRAMS * LENGTH, start[i]));
        wanted[2].push_back(interpret(programs.data() + i % 4 * LENGTH, start[i]));
        wanted[3].push_back(evaluate(programs.data(), table.data(), count, i, columns));
    }
    size_t wrong = mismatches(one.read(), wanted[0]) + mismatches(warps.read(), wanted[1]) + mismatches(lanes.read(), wanted[2]) +
                   mismatches(rows.read(), wanted[3]);
    return verdict("bytecode", wrong == 0, "%d threads, %zu wrong", count, wrong);
}
