// Streams: making them, order, priorities, callbacks, host functions, values in memory.
#include "conformance.cuh"

__global__ void add_one(int* words, int count) {
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < count) words[index] += 1;
}

__global__ void write_flag(volatile int* flag, int value) { *flag = value; }

static int order[8], steps = 0;
static void CUDART_CB host_step(void* data) { order[steps++] = (int)(size_t)data; }
static void CUDART_CB callback(cudaStream_t, cudaError_t status, void* data) {
    order[steps++] = (int)(size_t)data + (int)status * 100;
}

int main() {
    const int count = 1000;
    int *words, *pinned, host[count];
    MUST(cudaMalloc(&words, sizeof host));
    MUST(cudaHostAlloc(&pinned, sizeof host, cudaHostAllocDefault));

    chapter("making and asking");
    cudaStream_t plain, quiet, urgent;
    CALL(cudaStreamCreate(&plain));
    CALL(cudaStreamCreateWithFlags(&quiet, cudaStreamNonBlocking));
    CALL(cudaStreamCreateWithPriority(&urgent, cudaStreamNonBlocking, -100));
    CALL(cudaStreamCreateWithFlags(&quiet, 77));
    CALL(cudaStreamCreate(nullptr));
    int priority = 1;
    unsigned int flags = 9;
    CALL(cudaStreamGetPriority(urgent, &priority));
    SHOW(priority);
    CALL(cudaStreamGetPriority(0, &priority));
    SHOW(priority);
    CALL(cudaStreamGetFlags(urgent, &flags));
    SHOW(flags);
    CALL(cudaStreamGetFlags(plain, &flags));
    SHOW(flags);
    unsigned long long identity = 0, other = 0;
    CALL(cudaStreamGetId(plain, &identity));
    CALL(cudaStreamGetId(urgent, &other));
    EXPECT(identity != other);
    int device = 9;
    CALL(cudaStreamGetDevice(plain, &device));
    SHOW(device);
    CALL(cudaStreamQuery(plain));
    CALL(cudaStreamSynchronize(plain));

    chapter("attributes");
    cudaLaunchAttributeValue value = {};
    CALL(cudaStreamGetAttribute(plain, cudaLaunchAttributePriority, &value));
    SHOW(value.priority);
    CALL(cudaStreamGetAttribute(plain, cudaLaunchAttributeSynchronizationPolicy, &value));
    value.syncPolicy = cudaSyncPolicySpin;
    CALL(cudaStreamSetAttribute(plain, cudaLaunchAttributeSynchronizationPolicy, &value));
    CALL(cudaStreamCopyAttributes(urgent, plain));

    chapter("order in a stream");
    MUST(cudaMemsetAsync(words, 0, sizeof host, plain));
    for (int round = 0; round < 5; round++) add_one<<<4, 256, 0, plain>>>(words, count);
    MUST(cudaMemcpyAsync(pinned, words, sizeof host, cudaMemcpyDeviceToHost, plain));
    CALL(cudaStreamSynchronize(plain));
    CALL(cudaStreamQuery(plain));
    SHOW(pinned[0]);
    SHOW(pinned[count - 1]);

    chapter("order between streams");
    cudaEvent_t event;
    MUST(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    add_one<<<4, 256, 0, plain>>>(words, count);
    CALL(cudaEventRecord(event, plain));
    CALL(cudaStreamWaitEvent(urgent, event, 0));
    add_one<<<4, 256, 0, urgent>>>(words, count);
    MUST(cudaMemcpyAsync(pinned, words, sizeof host, cudaMemcpyDeviceToHost, urgent));
    CALL(cudaStreamSynchronize(urgent));
    SHOW(pinned[17]);
    CALL(cudaStreamWaitEvent(urgent, event, 5));

    chapter("host functions and callbacks");
    add_one<<<4, 256, 0, plain>>>(words, count);
    CALL(cudaLaunchHostFunc(plain, host_step, (void*)1));
    CALL(cudaStreamAddCallback(plain, callback, (void*)2, 0));
    CALL(cudaLaunchHostFunc(plain, host_step, (void*)3));
    CALL(cudaLaunchHostFunc(plain, nullptr, nullptr));
    CALL(cudaStreamAddCallback(plain, callback, (void*)4, 1));
    CALL(cudaStreamSynchronize(plain));
    SHOW(steps);
    SHOW(order[0]);
    SHOW(order[1]);
    SHOW(order[2]);

    chapter("default streams");
    add_one<<<4, 256>>>(words, count);
    CALL(cudaStreamSynchronize(cudaStreamLegacy));
    add_one<<<4, 256, 0, cudaStreamPerThread>>>(words, count);
    CALL(cudaStreamSynchronize(cudaStreamPerThread));
    CALL(cudaMemcpy(host, words, sizeof host, cudaMemcpyDeviceToHost));
    SHOW(host[3]);

    chapter("values in memory");
    CUdeviceptr place = (CUdeviceptr)words;
    CALL(cuStreamWriteValue32(plain, place, 41, 0));
    CALL(cuStreamWaitValue32(plain, place, 41, CU_STREAM_WAIT_VALUE_EQ));
    CALL(cuStreamWriteValue64(plain, place + 8, 0x123456789abcull, 0));
    CALL(cuStreamWaitValue64(plain, place + 8, 0x1000, CU_STREAM_WAIT_VALUE_GEQ));
    CALL(cuStreamWaitValue32(plain, place, 1, CU_STREAM_WAIT_VALUE_AND));
    CALL(cuStreamWaitValue32(plain, place, 0, CU_STREAM_WAIT_VALUE_NOR));
    CALL(cuStreamWriteValue32(plain, place + 2, 1, 0));
    CALL(cudaStreamSynchronize(plain));
    MUST(cudaMemcpy(host, words, 16, cudaMemcpyDeviceToHost));
    SHOW(host[0]);
    SHOW(*(long long*)(host + 2));
    CUstreamBatchMemOpParams batch[2] = {};
    batch[0].operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    batch[0].writeValue.address = place + 20;
    batch[0].writeValue.value = 7;
    batch[1].operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
    batch[1].waitValue.address = place + 20;
    batch[1].waitValue.value = 7;
    batch[1].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
    CALL(cuStreamBatchMemOp(plain, 2, batch, 0));
    CALL(cudaStreamSynchronize(plain));
    // A kernel of another stream writes what a stream waits for. It is loaded before: loading
    // waits for all streams, this one included.
    write_flag<<<1, 1, 0, urgent>>>(words + 64, 0);
    MUST(cudaStreamSynchronize(urgent));
    MUST(cudaMemsetAsync(words + 64, 0, 4, plain));
    MUST(cudaStreamSynchronize(plain));
    CALL(cuStreamWaitValue32(plain, place + 256, 5, CU_STREAM_WAIT_VALUE_EQ));
    add_one<<<1, 1, 0, plain>>>(words + 64, 1);
    CALL(cudaStreamQuery(plain));
    write_flag<<<1, 1, 0, urgent>>>(words + 64, 5);
    CALL(cudaStreamSynchronize(plain));
    MUST(cudaMemcpy(host, words + 64, 4, cudaMemcpyDeviceToHost));
    SHOW(host[0]);

    chapter("the driver's words");
    CUstream stream;
    CALL(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CALL(cuStreamCreate(&stream, 55));
    CUstream ranked;
    CALL(cuStreamCreateWithPriority(&ranked, 0, -2));
    CALL(cuStreamGetPriority(ranked, &priority));
    SHOW(priority);
    CALL(cuStreamGetFlags(stream, &flags));
    SHOW(flags);
    CALL(cuStreamGetId(stream, &identity));
    CUcontext context, current;
    CALL(cuStreamGetCtx(stream, &context));
    CALL(cuCtxGetCurrent(&current));
    EXPECT(context == current);
    CUdevice number;
    CALL(cuStreamGetDevice(stream, &number));
    SHOW(number);
    CUlaunchAttributeValue attribute = {};
    CALL(cuStreamGetAttribute(stream, CU_LAUNCH_ATTRIBUTE_PRIORITY, &attribute));
    attribute.syncPolicy = CU_SYNC_POLICY_AUTO;
    CALL(cuStreamSetAttribute(stream, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &attribute));
    CALL(cuStreamCopyAttributes(ranked, stream));
    CALL(cuLaunchHostFunc(stream, host_step, (void*)5));
    CALL(cuStreamAddCallback(stream, (CUstreamCallback)callback, (void*)6, 0));
    CALL(cuStreamWaitEvent(stream, (CUevent)event, 0));
    CALL(cuStreamQuery(ranked));
    CALL(cuStreamSynchronize(stream));
    SHOW(steps);
    CALL(cuStreamDestroy(stream));
    CALL(cuStreamDestroy(ranked));

    chapter("the end");
    CALL(cudaEventDestroy(event));
    CALL(cudaStreamDestroy(plain));
    CALL(cudaStreamDestroy(urgent));
    CALL(cudaStreamDestroy(0));
    CALL(cudaFreeHost(pinned));
    CALL(cudaFree(words));
    CALL(cudaGetLastError());
    return finish();
}
